"""One process writes into a run: the lock holds whatever else is opened, and its loss is noticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.errors import RunError, UsageError
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.run_list import list_runs
from flashbulb.training.loop import train
from tests.training.killing import TINY

TRY = (
    "import sys; from pathlib import Path; from flashbulb.storage.run_lock import RunLock\n"
    "print(RunLock(Path(sys.argv[1]) / '.lock').acquire())"
)


def other_process_gets_it(run):
    return subprocess.run([sys.executable, "-c", TRY, str(run)], capture_output=True, text=True).stdout == "True\n"


def test_asking_whether_it_is_locked_does_not_unlock_it(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.locked():
        assert directory.is_locked()
        assert RunDirectory(tmp_path).is_locked()
        (tmp_path / ".lock").open("rb").close()
        assert not other_process_gets_it(tmp_path)
        with pytest.raises(UsageError, match="in use by another process"), RunDirectory(tmp_path).locked():
            pass
    assert not directory.is_locked()
    assert other_process_gets_it(tmp_path)


def test_a_forked_process_does_not_keep_it(tmp_path):
    with RunDirectory(tmp_path).locked():
        reader, writer = os.pipe()
        started, starts = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.write(starts, b"x")
            os.read(reader, 1)  # until the test ends
            os._exit(0)
        os.read(started, 1)
    assert not RunDirectory(tmp_path).is_locked()
    os.close(writer)
    os.waitpid(child, 0)
    os.close(reader)


def test_a_removed_lock_is_noticed(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.locked():
        directory.require_lock()
        (tmp_path / ".lock").unlink()
        with pytest.raises(RunError, match="was removed"):
            directory.require_lock()
        with RunDirectory(tmp_path).locked(), pytest.raises(RunError, match="was removed"):
            directory.require_lock()


def test_a_run_stops_when_its_lock_is_removed(tmp_path):
    """Two processes wrote their rows into one file."""
    from tests.training.test_graceful_stop import Spoiled

    class Removes(Spoiled):
        def step(self, actions):
            self.after -= 1
            if self.after == 0:
                (tmp_path / "run/.lock").unlink()
            return self.inner.step(actions)

    config = configure("cpo", "tests.envs.gym_examples:make_walk", runs_dir=tmp_path, name="run", **TINY)
    with pytest.raises(RunError, match=r"run stopped in iteration 2: .*\.lock was removed"):
        train(config, Console(quiet=True), Removes("costs", 120, 0.0))
    assert len(read_csv(tmp_path / "run/metrics.csv")["cost"]) == 2


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_is_never_waited_for(kind, tmp_path):
    path = tmp_path / ".lock"
    path.symlink_to(tmp_path / "victim") if kind == "link" else os.mkfifo(path)
    assert not RunDirectory(tmp_path).is_locked()
    if kind == "link":
        with pytest.raises(OSError, match="symbolic"), RunDirectory(tmp_path).locked():
            pass
        assert not (tmp_path / "victim").exists()


def test_killed_while_it_is_made_a_run_leaves_its_name_free(tmp_path, monkeypatch):
    config = configure("cpo", "HazardField-v0", runs_dir=tmp_path, name="run")

    class Killed(BaseException):
        pass

    def kill(*arguments):
        raise Killed

    for name in ("rename", "mkdir", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, kill)
            with pytest.raises(Killed):
                RunDirectory.create(config)
        assert list_runs(tmp_path) == ([], [])
    assert RunDirectory.create(config).config.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(UsageError, match="name: 'run' is taken"):
        RunDirectory.create(config)


@pytest.mark.parametrize("leaves", [[], ["checkpoints"]])
def test_what_an_earlier_version_left_when_it_was_killed_is_taken_over(leaves, tmp_path):
    config = configure("cpo", "HazardField-v0", runs_dir=tmp_path, name="run")
    (tmp_path / "run").mkdir()
    for name in leaves:
        (tmp_path / "run" / name).mkdir()
    assert RunDirectory.create(config).path == tmp_path / "run"


@pytest.mark.parametrize("kind", ["file", "link", "run"])
def test_what_is_something_else_is_not(kind, tmp_path):
    path: Path = tmp_path / "run"
    if kind == "file":
        path.touch()
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        (path / "checkpoints").mkdir(parents=True)
        (path / "checkpoints/000001.safetensors").touch()
    with pytest.raises(UsageError, match="'run' is taken"):
        RunDirectory.create(configure("cpo", "HazardField-v0", runs_dir=tmp_path, name="run"))
