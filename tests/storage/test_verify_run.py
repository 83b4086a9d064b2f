"""`flashbulb verify`: every file of a run that decides or holds results is protected."""

import json
import os
import shutil

import numpy as np
import pytest
from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.cli.main import run as cli
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import load_arrays
from flashbulb.storage.csv_log import CsvLog, check_rows, read_csv
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.verify_run import verify
from flashbulb.training.loop import resume, train
from tests.training.killing import TINY

WALK = "tests.envs.gym_examples:make_walk"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    place = tmp_path_factory.mktemp("finished")
    config = configure("mice-cpo", WALK, runs_dir=place, name="run", **TINY | {"steps": 600})
    return train(config, Console(quiet=True)).directory


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


def test_a_run_as_it_was_written_is_whole(run, capsys):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert cli(["verify", str(run)]) == 0
    assert capsys.readouterr().out == f"{run} is whole: 6 iterations, 7 checkpoints and memories.\n"
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["metrics.csv", "episodes.csv", "timing.csv"])
def test_every_byte_of_the_rows_counts(name, run):
    """Forty flipped bits each; none passes, and resume refuses as well."""
    path, rng = run / name, np.random.default_rng(0)
    whole = path.read_bytes()
    for at in rng.choice(len(whole), 40, replace=False):
        flip(path, at)
        assert verify(run).problems, (at, whole[at : at + 1])
        path.write_bytes(whole)
    flip(path, len(whole) // 2)
    (run / "checkpoints/000006.safetensors").unlink()
    with pytest.raises(UsageError, match=f"{name} is damaged"):
        resume(run, Console(quiet=True), trusted_env=WALK)


SEALED = ("metrics.csv", "episodes.csv", "timing.csv", "checkpoints/*.safetensors", "memories/*.safetensors")
DAMAGES = int(os.environ.get("FLASHBULB_DAMAGES", "1000"))


def damaged(data, rng):
    """A bit flipped, bytes cut out, put in, zeroed or moved, at a random place."""
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 40))
    before, part, after = data[:at], data[at : at + size], data[at + size :]
    flipped = bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
    ways = [flipped, after, rng.bytes(size) + data[at:], b"", bytes(size) + after, after[:size] + part + after[size:]]
    return before + ways[rng.integers(len(ways))]


def contents(path):
    """What is read from a file, to the last bit."""
    read = load_arrays(path) if path.suffix == ".safetensors" else read_csv(path)
    return {name: array.tobytes() for name, array in read.items()}


@pytest.mark.parametrize("count", [50, pytest.param(DAMAGES, marks=pytest.mark.slow)])
def test_a_damage_is_found_or_changes_no_number(count, run):
    rng, found = np.random.default_rng(count), 0
    files = [path for pattern in SEALED for path in sorted(run.glob(pattern))]
    known = {path: contents(path) for path in files}
    for _ in range(count):
        path = files[rng.integers(len(files))]
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, rng))
        problems = verify(run).problems
        assert problems or contents(path) == known[path], path.name
        found += bool(problems)
        path.write_bytes(whole)
    assert found > 0.9 * count
    assert not verify(run).problems


def test_settings_spaces_checkpoints_and_memories_count(run, capsys):
    for name in ("checkpoints/000004.safetensors", "memories/000006.safetensors", "spaces.json"):
        whole = (run / name).read_bytes()
        flip(run / name, len(whole) // 2)
        assert verify(run).problems, name
        (run / name).write_bytes(whole)
    saved = json.loads((run / "config.json").read_text())
    saved["config"]["cost_limit"] = 2.0
    (run / "config.json").write_text(json.dumps(saved))
    assert cli(["verify", str(run)]) == 1
    out = capsys.readouterr().out
    assert "Problem: checkpoint: " in out
    assert "other settings than" in out


def test_rows_that_are_gone_or_swapped_count(run):
    path = run / "metrics.csv"
    header, *rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([header, *rows[:-1]]))
    assert "its first 6 rows are not those of 000006.safetensors" in verify(run).problems[-1]
    path.unlink()
    assert verify(run).problems


def test_another_version_or_processor_is_told(run, capsys):
    saved = json.loads((run / "config.json").read_text())
    saved["versions"]["numpy"], saved["machine"] = "1.0", "abacus, 3 cores"
    (run / "config.json").write_text(json.dumps(saved))
    notes = verify(run).notes
    assert any(note.startswith("started with numpy 1.0, now ") for note in notes)
    assert any(note.startswith("started with processor abacus, now ") for note in notes)
    (run / "checkpoints/000006.safetensors").unlink()
    resume(run, Console(quiet=True), trusted_env=WALK)
    assert "warning: numpy 1.0, now " in capsys.readouterr().err
    assert verify(run).problems == []


def test_columns_that_a_later_version_adds_change_no_seal(tmp_path):
    log = CsvLog(tmp_path / "metrics.csv")
    log.write([{"iteration": 0, "cost": 0.5}])
    sealed = log.seal()
    log.write([{"iteration": 1, "cost": 0.5, "new": 3.0}])
    check_rows(log.path, sealed, "it")
    check_rows(log.path, log.seal(), "it")
    assert CsvLog(log.path).seal() == log.seal()
    log.path.write_bytes(log.path.read_bytes().replace(b"cost", b"csot"))
    with pytest.raises(UsageError, match="damaged"):
        check_rows(log.path, sealed, "it")


@pytest.mark.parametrize("rows", [3, [], {"metrics.csv": 3}, {"metrics.csv": {"rows": "x", "columns": None}}])
def test_metadata_of_another_form_are_a_problem_and_no_traceback(rows, run):
    from flashbulb.storage.checkpoint import Checkpoints

    checkpoints = Checkpoints(RunDirectory(run).checkpoints)
    file = checkpoints.load(checkpoints.path(6))
    from flashbulb.storage.checkpoint import save_tree

    save_tree(checkpoints.path(6), file.arrays, {}, file.about | {"rows": rows})
    assert verify(run).problems
