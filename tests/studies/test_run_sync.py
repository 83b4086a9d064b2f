"""A run's directory on the move."""

import pytest

from flashbulb.errors import RunError
from flashbulb.studies.run_sync import Parcel, Sender, unpack


def put(run, **files):
    for name, text in files.items():
        path = run / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def contents(run):
    return {path.relative_to(run).as_posix(): path.read_text() for path in run.rglob("*") if path.is_file()}


def test_only_what_is_new_is_sent_and_what_is_gone_goes(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    put(here, metrics_csv="a\n", checkpoints__2="two", memories__1="m")
    sender = Sender(here)
    assert sender.has_new_checkpoint()
    unpack(sender.pack(), there)
    assert contents(there) == contents(here)
    assert not sender.has_new_checkpoint()
    assert sender.pack() == Parcel({}, ())

    (here / "checkpoints/2").unlink()
    put(here, metrics_csv="a\nb\n", checkpoints__4="four")
    assert sender.has_new_checkpoint()
    parcel = sender.pack()
    assert set(parcel.files) == {"metrics.csv", "checkpoints/4"}
    assert parcel.gone == ("checkpoints/2",)
    assert parcel.has_checkpoint
    unpack(parcel, there)
    assert contents(there) == contents(here)


def test_checkpoints_are_read_before_rows_and_written_after_them(tmp_path, monkeypatch):
    """A driver that dies in between must not have a checkpoint without its rows."""
    put(tmp_path / "here", metrics_csv="rows", checkpoints__2="two", timing_csv="t")
    parcel = Sender(tmp_path / "here").pack()
    assert next(iter(parcel.files)) == "checkpoints/2"
    written = []
    monkeypatch.setattr("flashbulb.studies.run_sync.write_whole", lambda path, data: written.append(path.name))
    unpack(parcel, tmp_path / "there")
    assert written[-1] == "2"
    assert set(written) == {"metrics.csv", "timing.csv", "2"}


def test_locks_and_files_in_the_making_stay(tmp_path):
    run = tmp_path / "run"
    put(run, metrics_csv="rows", checkpoints__2="two")
    (run / ".lock").touch()
    (run / "checkpoints/000004.safetensors.tmp").write_text("half")
    assert set(Sender(run).pack().files) == {"metrics.csv", "checkpoints/2"}


@pytest.mark.parametrize("name", ["../elsewhere", "/etc/elsewhere", "memories/../../elsewhere"])
def test_nobody_writes_elsewhere(name, tmp_path):
    with pytest.raises(RunError, match="is not in the run's directory"):
        unpack(Parcel({name: b"x"}, ()), tmp_path / "run")
    with pytest.raises(RunError, match="is not in the run's directory"):
        unpack(Parcel({}, (name,)), tmp_path / "run")
    assert not (tmp_path / "elsewhere").exists()
