"""The scripts of examples/ run, made small, and so does the notebook."""

import json
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


# The page on comparing, whose code is run between changes, does what the example does.
@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[pytest.mark.slow] if p.stem == "compare" else [], id=p.stem) for p in EXAMPLES]
)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [path.name, "100", *(["2"] if path.stem == "compare" else [])])
    monkeypatch.setattr(registry, "_BASES", dict(registry._BASES))
    monkeypatch.setattr(registry, "ALGORITHMS", dict(registry.ALGORITHMS))
    runpy.run_path(str(path), run_name="__main__")
    assert SAYS[path.stem] in capsys.readouterr().out


@pytest.mark.slow
def test_notebook(tmp_path, monkeypatch, capsys):
    """Its code cells in order, in one namespace: they are plain Python, so that no Jupyter is needed here."""
    import flashbulb

    notebook = json.loads((EXAMPLES[0].parent / "first_steps.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "outputs are not kept in the repository"
    real = flashbulb.train
    small = {"num_envs": 2, "steps_per_iteration": 200, "critic": {"passes": 1, "hidden": (4,)}}
    monkeypatch.setattr(flashbulb, "train", lambda *what, **settings: real(*what, **(settings | small)))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell.replace("200_000, 3", "400, 2"), "first_steps.ipynb", "exec"), names)
    assert names["STEPS"] == 400
    assert all((tmp_path / name).is_file() for name in ("compare.png", "compare.html"))
    assert "P(a seed of trpo-pid costs less" in capsys.readouterr().out
