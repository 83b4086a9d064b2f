"""The scripts of examples/ run, made small."""

import runpy
import sys
from pathlib import Path

import pytest

from flashbulb.algorithms import registry

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SAYS = {
    "train_and_look": "share_over_limit",
    "own_environment": "at 0.8 the inflow is",
    "own_algorithm": "whole of training:",
    "compare": "mice-cpo  violation_rate",
    "policy_as_onnx": "the same as in Python: True",
}


def test_every_example_is_known():
    assert {path.stem for path in EXAMPLES} == set(SAYS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [path.name, "100", *(["2"] if path.stem == "compare" else [])])
    monkeypatch.setattr(registry, "_BASES", dict(registry._BASES))
    monkeypatch.setattr(registry, "ALGORITHMS", dict(registry.ALGORITHMS))
    runpy.run_path(str(path), run_name="__main__")
    assert SAYS[path.stem] in capsys.readouterr().out
