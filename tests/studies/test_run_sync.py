"""Copying a run directory as it grows."""

import pytest

from flashbulb.errors import RunError
from flashbulb.studies.run_sync import NO_CHANGES, FileChanges, RunWatcher, apply_changes


def put(run, **files):
    for name, text in files.items():
        path = run / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def contents(run):
    return {path.relative_to(run).as_posix(): path.read_text() for path in run.rglob("*") if path.is_file()}


def test_only_changes_are_copied_and_deletions_are_applied(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    put(here, metrics_csv="a\n", checkpoints__2="two", memories__1="m")
    watcher = RunWatcher(here)
    assert watcher.has_new_checkpoint()
    apply_changes(watcher.changes(), there)
    assert contents(there) == contents(here)
    assert not watcher.has_new_checkpoint()
    assert watcher.changes() == NO_CHANGES

    (here / "checkpoints/2").unlink()
    put(here, metrics_csv="a\nb\n", checkpoints__4="four")
    assert watcher.has_new_checkpoint()
    changes = watcher.changes()
    assert set(changes.files) == {"metrics.csv", "checkpoints/4"}
    assert changes.deleted == ("checkpoints/2",)
    apply_changes(changes, there)
    assert contents(there) == contents(here)


def test_checkpoints_are_read_before_metrics_and_written_after_them(tmp_path, monkeypatch):
    """If the driver dies in between, it must not have a checkpoint without the metrics before it."""
    put(tmp_path / "here", metrics_csv="rows", checkpoints__2="two", timing_csv="t")
    changes = RunWatcher(tmp_path / "here").changes()
    assert next(iter(changes.files)) == "checkpoints/2"
    written = []
    monkeypatch.setattr("flashbulb.studies.run_sync.write_whole", lambda path, data: written.append(path.name))
    apply_changes(changes, tmp_path / "there")
    assert written[-1] == "2"
    assert set(written) == {"metrics.csv", "timing.csv", "2"}


def test_locks_and_partial_files_are_not_copied(tmp_path):
    run = tmp_path / "run"
    put(run, metrics_csv="rows", checkpoints__2="two")
    (run / ".lock").touch()
    (run / "checkpoints/000004.safetensors.tmp").write_text("half")
    assert set(RunWatcher(run).changes().files) == {"metrics.csv", "checkpoints/2"}


@pytest.mark.parametrize("name", ["../elsewhere", "/etc/elsewhere", "memories/../../elsewhere"])
def test_paths_outside_the_run_directory_are_refused(name, tmp_path):
    with pytest.raises(RunError, match="is not in the run's directory"):
        apply_changes(FileChanges({name: b"x"}, ()), tmp_path / "run")
    with pytest.raises(RunError, match="is not in the run's directory"):
        apply_changes(FileChanges({}, (name,)), tmp_path / "run")
    assert not (tmp_path / "elsewhere").exists()
