"""Runs that a stranger has filled with what programs stumble over: each is one sentence, and none is waited for."""

import json
import os
import signal

import numpy as np
import pytest

from flashbulb.cli.main import main
from flashbulb.errors import UsageError
from flashbulb.memory.offline import load_transitions
from flashbulb.shown_text import printable
from flashbulb.storage.checkpoint import load_arrays, save_tree
from tests.training.small_run import made_run


@pytest.fixture
def made(tmp_path):
    return made_run(tmp_path / "runs", "r", done=2)


def flashbulb(capsys, *words):
    """Exit code and all that was printed; a traceback would be an exception here."""
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    out = capsys.readouterr()
    return stop.value.code, out.out + out.err


def left_out(capsys, runs):
    """The one sentence of `flashbulb runs` about a run that it leaves out."""
    code, text = flashbulb(capsys, "runs", runs)
    (about,) = [line for line in text.splitlines() if line.startswith("flashbulb: ")]
    assert code == 0
    assert " is left out: " in about
    return text


def sentence(capsys, *words):
    code, text = flashbulb(capsys, *words)
    assert code in (1, 2), text
    assert len(text.strip().splitlines()) == 1
    assert text.startswith("flashbulb: ")
    return text


def test_letters_in_a_first_column(made, capsys):
    path = made / "metrics.csv"
    path.write_bytes(path.read_bytes().replace(b"\n0,", b"\nx,"))
    assert "metrics.csv" in sentence(capsys, "resume", made)
    assert "metrics.csv" in left_out(capsys, made.parent)
    sentence(capsys, "plot", made)


def test_a_misspelt_header(made, capsys):
    path = made / "metrics.csv"
    path.write_bytes(path.read_bytes().replace(b"cost", b"csot"))
    assert "metrics.csv has no column 'cost'" in left_out(capsys, made.parent)
    path.write_bytes(path.read_bytes().replace(b"steps", b"stpes"))
    assert "metrics.csv has no column 'steps'" in left_out(capsys, made.parent)


def memory_as_checkpoint(made):
    arrays = load_arrays(made / "checkpoints/000002.safetensors")
    kept = {name: array for name, array in arrays.items() if name.split("/")[0] in ("memory", "normaliser", "env")}
    save_tree(made / "checkpoints/000003.safetensors", kept)


def test_a_memory_as_checkpoint(made, capsys):
    memory_as_checkpoint(made)
    code, text = flashbulb(capsys, "export", made)
    assert code == 0
    assert "000003.safetensors is no checkpoint, but something else; the one before is used" in text


def test_a_pipe_as_checkpoint_or_as_anything(made, capsys):
    os.mkfifo(made / "checkpoints/000003.safetensors")
    code, text = flashbulb(capsys, "export", made)
    assert code == 0
    assert "it is no ordinary file" in text
    for name in ("metrics.csv", "spaces.json", "config.json"):
        (made / name).unlink()
        os.mkfifo(made / name)
        assert "no ordinary file" in sentence(capsys, "plot" if name == "metrics.csv" else "export", made)


def test_a_sparse_checkpoint(made, capsys):
    with (made / "checkpoints/000003.safetensors").open("wb") as file:
        file.truncate(60 * 2**30)
    code, text = flashbulb(capsys, "export", made)
    assert code == 0
    assert "the one before is used" in text


@pytest.mark.parametrize("name", ["config.json", "spaces.json"])
def test_deeply_nested_json(name, made, capsys):
    (made / name).write_text("[" * 100_000 + "]" * 100_000)
    assert "nested too deeply" in sentence(capsys, "export", made)
    saved = '{"format": 3, "config": {"algorithm": "cpo", "env": "HazardField-v0", "memory": '
    (made / "config.json").write_text(saved + "[" * 5_000 + "]" * 5_000 + "}}")
    sentence(capsys, "export", made)


@pytest.mark.parametrize("change", [{"shape": [2**40]}, {"shape": "x"}, {"low": {}}, {"dtype": "object"}, {"kind": 3}])
def test_spaces_that_are_none(change, made, capsys):
    plain = json.loads((made / "spaces.json").read_text())
    plain["observation"] |= change
    (made / "spaces.json").write_text(json.dumps(plain))
    assert "spaces.json" in sentence(capsys, "export", made)


def test_markup_in_a_name(tmp_path, capsys):
    run = made_run(tmp_path, "[red]r", done=2)
    code, text = flashbulb(capsys, "runs", run.parent)
    assert code == 0
    assert "[red]r" in text
    resumed = made_run(tmp_path / "[", "x]", "ppo", iterations=2, done=2)
    code, text = flashbulb(capsys, "resume", resumed)
    assert code == 0
    assert "[/x] is finished" in text


def test_escapes_in_names_do_not_reach_the_terminal(made, capsys):
    renamed = made.rename(made.with_name("\x1b[2Jr\x07"))
    code, text = flashbulb(capsys, "runs", renamed.parent)
    assert code == 0
    assert r"\x1b[2Jr\x07" in text
    assert "\x1b" not in text
    saved = json.loads((renamed / "config.json").read_text())
    saved["config"]["env"] = "a\x1b]0;title\x07:b"
    (renamed / "config.json").write_text(json.dumps(saved))
    assert "\x1b" not in left_out(capsys, renamed.parent)
    for words in (["export", renamed], ["verify", renamed]):
        assert "\x1b" not in sentence(capsys, *words)
    assert printable("Grüße, \u202e\x1b[1m") == "Grüße, \\u202e\\x1b[1m"


def test_a_file_that_unpacks_to_more_than_the_memory(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "bomb.hdf5", "w") as file:
        file.create_dataset("observations", shape=(2**40, 3), dtype="f8", chunks=(2**20, 3), compression="gzip")
        file.create_group("actions")
        file.create_dataset("costs", shape=(3,), dtype="f4")
    assert (tmp_path / "bomb.hdf5").stat().st_size < 10_000
    with pytest.raises(UsageError, match=r"unpacked, it has [\d,]+ bytes, more than"):
        load_transitions(str(tmp_path / "bomb.hdf5"), 3, (2,))
    with h5py.File(tmp_path / "group.hdf5", "w") as file:
        file.create_group("observations")
    with pytest.raises(UsageError, match="no array called observations"):
        load_transitions(str(tmp_path / "group.hdf5"), 3, (2,))


def test_a_packed_array_whose_parts_are_small_is_read(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", observations=np.ones((4, 3)), actions=np.ones((4, 2)), costs=np.ones(4))
    assert len(load_transitions(str(tmp_path / "a.npz"), 3, (2,)).costs) == 4


def test_a_further_ctrl_c_during_the_exit_prints_no_traceback(monkeypatch, capsys):
    def interrupted(words):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("flashbulb.cli.main.run", interrupted)
    try:
        assert flashbulb(capsys, "train") == (130, "flashbulb: interrupted.\n")
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
