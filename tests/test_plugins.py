"""Algorithms, cost streams and tasks of others: registered, trained, resumed, evaluated, reported, and missed."""

import json
import os
import subprocess
import sys

import pytest

import flashbulb
from flashbulb.algorithms.parts import ActorPart
from flashbulb.algorithms.registry import ALGORITHMS, Algorithm, algorithm_of, configure, get_algorithm
from flashbulb.cli.main import run
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.plugins import load_plugin
from tests.example_package import examples, install

SMALL = ["--num-envs", "2", "--steps-per-iteration", "80", "--policy.hidden", "4", "--critic.hidden", "4"]
SMALL += ["--critic.passes", "1", "--checkpoint-every", "1", "--threads", "1"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def flashbulb_in(place, *arguments, path=()):
    paths = [*map(str, path), os.path.join(ROOT, "src")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "flashbulb", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=place, env=env)


def test_an_installed_package_is_found(tmp_path):
    assert "Slope-v0" in flashbulb_in(tmp_path, "envs", path=[install(tmp_path / "site")]).stdout.splitlines()


@pytest.mark.slow
def test_an_installed_package_trains_resumes_evaluates_and_reports(tmp_path):
    site, home = install(tmp_path / "site"), tmp_path / "home"
    home.mkdir()
    done = flashbulb_in(
        home, "train", "late-penalty-ppo", "Slope-v0", "--steps", "240", "--name", "r", *SMALL, path=[site]
    )
    assert done.returncode == 0, done.stderr
    there = home / "runs" / "r"
    assert json.loads((there / "config.json").read_text())["config"]["plugins"] == ["outside"]
    metrics = (there / "metrics.csv").read_bytes()
    assert b"late" in metrics.splitlines()[0]
    (there / "checkpoints" / "000003.safetensors").unlink()
    for command in (["resume", there], ["evaluate", there, "--episodes", "2"], ["report", there, "--episodes", "0"]):
        done = flashbulb_in(home, *command, path=[site])
        assert done.returncode == 0, done.stderr
    assert (there / "metrics.csv").read_bytes() == metrics

    missed = flashbulb_in(home, "resume", there)
    assert missed.returncode == 2
    assert missed.stderr.startswith("flashbulb: plugin: the run needs outside, which is not loaded; if you trust it,")


def test_a_module_named_on_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_parts.py").write_text(examples()["my_parts"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    command = ["train", "mice-penalty-ppo", "HazardField-v0", "--plugin", "my_parts", "--name", "r", *SMALL]
    try:
        assert run([*command, "--steps", "160"]) == 0
        assert json.loads((tmp_path / "runs/r/config.json").read_text())["config"]["plugins"] == ["my_parts"]
        assert run(["resume", "runs/r", "--plugin=my_parts"]) == 0
        assert run(["evaluate", "--plugin", "my_parts", "runs/r", "--episodes", "1"]) == 0
        assert "nothing to resume" in capsys.readouterr().out
        sys.modules.pop("my_parts")
        with pytest.raises(UsageError, match="needs my_parts, which is not loaded"):
            run(["evaluate", "runs/r"])
    finally:
        forget("penalty-ppo")


def forget(name):
    from flashbulb.algorithms import registry

    registry._BASES.pop(name, None)
    ALGORITHMS.pop(name, None)


def test_a_script_is_asked_for_when_a_run_of_it_is_met():
    with pytest.raises(UsageError, match=r"unknown algorithm 'of-a-script'.*registered by a script"):
        algorithm_of(Config("of-a-script", "HazardField-v0", plugins=("__main__",)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--plugin", "no.such_module", "algorithms"], "no.such_module cannot be imported.*ModuleNotFoundError"),
        (["algorithms", "--plugin", "../x"], "'../x' is not allowed"),
        (["algorithms", "--plugin"], "plugin: missing"),
        (["--plugin", "json"], "command: missing"),
    ],
)
def test_bad_plugins_are_refused_in_one_sentence(arguments, says):
    with pytest.raises(UsageError, match=says):
        run(arguments)


@pytest.mark.parametrize(
    ("name", "algorithm", "says"),
    [
        ("cpo", Algorithm("x"), "'cpo' is taken"),
        ("mice-cpo", Algorithm("x"), "'mice-cpo' is taken"),
        ("My Algorithm", Algorithm("x"), "lower-case words"),
        ("mine", "cpo", "must be an Algorithm"),
        ("mine", Algorithm("x", actor="newton"), "actor: 'newton' is not allowed"),
        ("mine", Algorithm("x", multiplier="dual"), "multiplier: 'dual' is not allowed"),
        ("mine", Algorithm("x", augmentation="all"), "augmentation: 'all'"),
        ("mine", Algorithm("x", cost_stream="no"), "cost_stream: 'no'"),
        ("mine", Algorithm("x", settings={"stepz": 3}), "stepz: there is no such setting"),
        ("mine", Algorithm("x", ActorPart(lambda *_: None, settings=("sgd",))), "'sgd' is not allowed"),
    ],
)
def test_algorithms_that_cannot_be_registered(name, algorithm, says):
    with pytest.raises(UsageError, match=says):
        flashbulb.register_algorithm(name, algorithm)
    assert "mine" not in ALGORITHMS


def test_a_module_may_register_its_own_name_again_and_no_other_module_may(tmp_path, monkeypatch):
    try:
        flashbulb.register_algorithm("again", Algorithm("first", "ppo", "pid"))
        flashbulb.register_algorithm("again", Algorithm("second", "ppo", "pid"))
        assert get_algorithm("again").summary == "second"
        assert get_algorithm("mice-again").cost_stream == "memory"
        assert configure("mice-again", "HazardField-v0").plugins == (__name__,)
        (tmp_path / "thief.py").write_text(
            "import flashbulb\nfrom flashbulb.algorithms.registry import Algorithm\n"
            "flashbulb.register_algorithm('again', Algorithm('x'))\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(UsageError, match=r"thief cannot be loaded .*'again' is taken"):
            load_plugin("thief")
    finally:
        forget("again")


def test_cost_streams_and_tasks_that_cannot_be_registered():
    for name in ("mice", "Late", "a-b"):
        with pytest.raises(UsageError, match=f"cost_stream: '{name}' is not allowed as a name"):
            flashbulb.register_cost_stream(name, lambda config: None)
    with pytest.raises(UsageError, match="'memory' is taken"):
        flashbulb.register_cost_stream("memory", lambda config: None)
    with pytest.raises(UsageError, match="'HazardField-v0' is taken"):
        flashbulb.register_env("HazardField-v0", lambda: None)
    with pytest.raises(UsageError, match="is not allowed as an id"):
        flashbulb.register_env("a:b", lambda: None)
    with pytest.raises(UsageError, match="3 cannot make"):
        flashbulb.register_env("Three-v0", 3)


def test_a_batch_can_be_registered_as_a_task(tmp_path):
    from flashbulb.envs import registry
    from tests.algorithms.corridor import Corridor

    flashbulb.register_env("Corridor-v0", lambda num_envs, seed: Corridor(num_envs), batched=True)
    try:
        assert isinstance(flashbulb.make("Corridor-v0", 3), Corridor)
        assert configure("cpo", "Corridor-v0").plugins == (__name__,)
        assert "Corridor-v0" in flashbulb.env_ids()
    finally:
        registry._REGISTERED.pop("Corridor-v0")
