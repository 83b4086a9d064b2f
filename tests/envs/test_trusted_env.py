"""A run directory from a stranger: its config.json may name any code, and no command runs it unasked."""

import json
import os
import subprocess
import sys

import pytest

import flashbulb
from flashbulb.cli.main import run
from flashbulb.envs.env_pool import worker_paths
from flashbulb.envs.trusted_env import module_file, require_trusted
from flashbulb.errors import UsageError
from flashbulb.training import loop
from tests.training.small_run import made_run

PAYLOAD = "from pathlib import Path\nPath('executed').touch()\ndef go():\n    Path('called').touch()\n"
SOURCE = "runs.stranger.payload:go"


@pytest.fixture(params=["mice-cpo"])
def stranger(request, tmp_path, monkeypatch):
    """A run with a payload inside, which its config.json names; the user is in the directory above."""
    path = made_run(tmp_path / "runs", "stranger", request.param, iterations=8)
    (path / "payload.py").write_text(PAYLOAD)
    saved = json.loads((path / "config.json").read_text())
    saved["config"]["env"] = SOURCE
    del saved["id"]  # a checkpoint that is bound to its run has the environment in it
    (path / "config.json").write_text(json.dumps(saved))
    monkeypatch.chdir(tmp_path)
    return path


COMMANDS = [["evaluate"], ["evaluate", "--video", "a.gif"], ["bias"], ["memory"], ["resume"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_that_need_the_environment_refuse_in_a_sentence(words, stranger, tmp_path):
    before = {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as caught:
        run([words[0], str(stranger), *words[1:]])
    assert "\n" not in str(caught.value)
    if words[0] != "memory":  # which has maps of our own tasks only
        assert f"call 'go' in {stranger / 'payload.py'}" in str(caught.value)
        assert f"--env {SOURCE}" in str(caught.value)
    assert not (tmp_path / "executed").exists()
    assert {path: path.read_bytes() for path in stranger.rglob("*") if path.is_file()} == before


def test_commands_that_need_none_do_their_work(stranger, tmp_path):
    assert run(["runs", "runs"]) == 0
    assert run(["plot", str(stranger)]) == 0
    assert run(["report", str(stranger), "--episodes", "0"]) == 0
    assert run(["report", str(stranger)]) == 0  # with a sentence where the replay would be
    assert not (tmp_path / "executed").exists()


def test_from_python_the_same(stranger, tmp_path):
    for function in (flashbulb.evaluate, flashbulb.resume, loop.resume):
        with pytest.raises(UsageError, match="if you trust it, add --env"):
            function(stranger)
    assert not (tmp_path / "executed").exists()


def test_the_users_word_runs_it(stranger, tmp_path):
    with pytest.raises(UsageError, match="no Gymnasium environment"):
        flashbulb.evaluate(stranger, 1, env=SOURCE)
    assert (tmp_path / "called").exists()
    with pytest.raises(UsageError, match="the environment of this run is"):
        flashbulb.resume(stranger, env="os:getcwd")


@pytest.mark.parametrize("source", ["HazardField-v0", "flashbulb/SafetyPointGoal1-v0", "CartPole-v1"])
def test_what_is_installed_needs_no_word(source):
    require_trusted(source)


@pytest.mark.parametrize("source", ["Nowhere-v0", "os:abort", "a:b:c", ":", "x..y:z", "os:CartPole-v1"])
def test_what_is_not_needs_one(source):
    with pytest.raises(UsageError, match="env: ") as caught:
        require_trusted(source)
    assert "\n" not in str(caught.value)


def test_the_file_is_found_without_importing_packages(tmp_path, monkeypatch):
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("raise SystemExit('imported')")
    (inner / "leaf.py").touch()
    monkeypatch.chdir(tmp_path)
    assert module_file("outer.inner.leaf") == str(inner / "leaf.py")
    assert "not found" in module_file("outer.inner.other")


def test_a_worker_has_the_current_directory_only_by_the_users_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert str(tmp_path) not in worker_paths("CartPole-v1")
    assert str(tmp_path) in worker_paths("mine:make")
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere{os.pathsep}{tmp_path}")
    assert str(tmp_path) in worker_paths("CartPole-v1")


def test_a_module_beside_the_user_does_not_replace_one_of_a_worker(tmp_path):
    """numpy.py in the current directory; the environment has a Gymnasium id, of which Gymnasium reports no cost."""
    (tmp_path / "numpy.py").write_text("open('executed', 'w')")
    script = (
        "import flashbulb, os, sys; os.chdir(sys.argv[1]); sys.path.insert(0, '')\n"
        "flashbulb.make('CartPole-v1', 1).close()"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "executed").exists()
