"""The public interface: real signatures, types and docstrings, and the defaults of the configuration."""

import dataclasses
import inspect
import typing

import pytest

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.config import Config
from tests.training.small_run import made_run

FUNCTIONS = [name for name in flashbulb.__all__ if inspect.isfunction(getattr(flashbulb, name))]


def test_every_function_is_exported():
    assert set(FUNCTIONS) == {
        "check", "env_ids", "evaluate", "load_policy", "make", "plot", "register_algorithm",
        "register_cost_stream", "register_env", "report", "resume", "train",
    }  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_typed_and_documented(name):
    function = getattr(flashbulb, name)
    signature = inspect.signature(function)
    assert len(inspect.getdoc(function).splitlines()[0]) > 10
    assert signature.return_annotation not in (inspect.Signature.empty, "Any", typing.Any)
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.kind is not inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            assert name == "train"
        else:
            assert parameter.annotation not in ("Any", typing.Any)


def test_the_defaults_of_train_are_those_of_the_configuration():
    defaults = {field.name: field.default for field in dataclasses.fields(Config)}
    for name, parameter in inspect.signature(flashbulb.train).parameters.items():
        if parameter.default is not inspect.Parameter.empty and name not in ("callbacks", "verbose", "num_envs"):
            assert parameter.default == defaults[name], name


@pytest.mark.parametrize("algorithm", ["cpo", "mice-salient"])
def test_train_has_the_defaults_of_the_algorithm(algorithm, monkeypatch):
    """As on the command line; a number of environments of Python's own once took the place of the algorithm's."""
    seen = []
    monkeypatch.setattr("flashbulb.training.loop.train", lambda config, *rest, **more: seen.append(config))
    flashbulb.train(algorithm, "HazardField-v0", verbose=False)
    assert seen == [configure(algorithm, "HazardField-v0")]


def test_plot_report_and_evaluate_return_what_they_say(tmp_path):
    runs = [made_run(tmp_path, f"cpo{seed}", seed=seed) for seed in range(2)]
    figure = flashbulb.plot(runs, tmp_path / "curves.png")
    assert figure.read_bytes().startswith(b"\x89PNG")
    for _ in range(2):  # importing the package `flashbulb.report` must not replace the function
        page = flashbulb.report(runs, tmp_path / "report.html", episodes=0)
    assert "<html" in page.read_text()
    measured = flashbulb.evaluate(runs[0], episodes=2, deterministic=True)
    assert set(measured) == {"deterministic"}
    assert {"return", "cost", "length", "share_over_limit"} == set(measured["deterministic"])


def test_check_names_problems():
    assert flashbulb.check("os:getcwd").problems
    assert not flashbulb.check("tests.envs.gym_examples:make_six").problems
