"""Files in a directory that a stranger has filled: links are not followed, pipes not waited for."""

import contextlib
import os

import pytest
from rich.console import Console

from flashbulb.errors import RunError, UsageError
from flashbulb.storage.csv_log import CsvLog
from flashbulb.storage.safe_files import read_regular, refuse_link, write_whole
from flashbulb.training.loop import resume
from tests.training.small_run import made_run


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("untouched")
    return path


def test_a_file_replaces_a_link_and_not_its_target(victim, tmp_path):
    (tmp_path / "link").symlink_to(victim)
    write_whole(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert victim.read_text() == "untouched"


def test_a_temporary_name_cannot_be_foreseen(victim, tmp_path, monkeypatch):
    names = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: names.append(old.name) or real(old, new))
    (tmp_path / "a.tmp").symlink_to(victim)
    for _ in range(2):
        write_whole(tmp_path / "a", b"new")
    assert len(set(names)) == 2
    assert victim.read_text() == "untouched"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.tmp", "victim"]


def test_rows_are_not_written_through_a_link(victim, tmp_path):
    path = tmp_path / "metrics.csv"
    path.symlink_to(victim)
    with pytest.raises((OSError, RunError)):
        CsvLog(path).write([{"iteration": 0}])
    path.unlink()
    path.symlink_to(tmp_path / "new")
    with pytest.raises(OSError, match="exists"):
        CsvLog(path).write([{"iteration": 0}])
    assert victim.read_text() == "untouched"
    assert not (tmp_path / "new").exists()


NAMES = ("metrics.csv", "timing.csv", "episodes.csv", "spaces.json", ".lock", "curves.png", "metrics.csv.old")
NAMES += ("checkpoints/000003.safetensors", "checkpoints/000004.safetensors")


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_writes_through_no_link(name, tmp_path, victim):
    run = made_run(tmp_path / "runs", "r", "ppo", iterations=4, done=2, checkpoint_every=1)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim)
    with contextlib.suppress(UsageError, RunError, OSError):
        resume(run, Console(quiet=True))
    assert victim.read_text() == "untouched"


def test_default_names_of_figures_and_policies_are_no_links(victim, tmp_path):
    (tmp_path / "policy.onnx").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link; name another file"):
        refuse_link(tmp_path / "policy.onnx")


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no ordinary file"):
        read_regular(tmp_path / "pipe")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**43)
    with pytest.raises(OSError, match="bytes, more than"):
        read_regular(tmp_path / "sparse")
