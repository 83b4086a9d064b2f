"""A checkpoint belongs to one run, with its settings and spaces, and to one iteration."""

import json
import shutil

import numpy as np
import pytest
from rich.console import Console

from flashbulb.analysis.memory_snapshots import load_memory_snapshots
from flashbulb.analysis.trained_policy import load_policy
from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import Checkpoints, Damaged, load_file, save_tree
from flashbulb.storage.run_directory import load_config
from flashbulb.training.loop import resume
from tests.training.small_run import made_run

QUIET = Console(quiet=True)


def checkpoint(path, done=2):
    return path / f"checkpoints/{done:06d}.safetensors"


def edit(path, **changes):
    saved = json.loads(path.read_text())
    (saved.get("config") or saved).update(changes)
    path.write_text(json.dumps(saved))


def refused(path, says):
    """By every command that reads a checkpoint, in one sentence; and no file changes."""
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != ".lock"}
    commands = (lambda: resume(path, QUIET), lambda: load_policy(path), lambda: run(["export", str(path)]))
    for command in (*commands, lambda: load_policy(max((path / "checkpoints").iterdir()))):
        with pytest.raises(UsageError, match=says) as caught:
            command()
        assert "\n" not in str(caught.value)
    after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != ".lock"}
    assert after == before


def test_one_of_another_seed_is_refused(tmp_path):
    ours, theirs = (made_run(tmp_path, str(seed), done=2, seed=seed) for seed in (0, 1))
    shutil.copy(checkpoint(theirs), checkpoint(ours))
    refused(ours, "belongs to another run")


def test_one_of_an_equal_run_is_refused(tmp_path):
    ours, theirs = (made_run(tmp_path, name, done=2) for name in "ab")
    shutil.copy(checkpoint(theirs), checkpoint(ours))
    refused(ours, "belongs to another run")


def test_a_renamed_one_is_refused(tmp_path):
    path = made_run(tmp_path, "r", done=3)
    checkpoint(path, 3).rename(checkpoint(path, 2))
    refused(path, "000002.safetensors is of iteration 3, so it was renamed or copied")


@pytest.mark.parametrize("change", [{"gamma": 0.9}, {"cost_limit": 5.0}, {"seed": 7}, {"memory": {"neighbours": 3}}])
def test_settings_changed_in_the_middle_of_a_run_are_refused(change, tmp_path):
    path = made_run(tmp_path, "r", done=2)
    edit(path / "config.json", **change)
    refused(path, "other settings than .*config.json has")


def test_changed_bounds_are_refused(tmp_path):
    """They would scale and clip the actions of an exported policy."""
    path = made_run(tmp_path, "r", done=2)
    spaces = json.loads((path / "spaces.json").read_text())
    spaces["action"]["high"][0] *= 2
    (path / "spaces.json").write_text(json.dumps(spaces))
    refused(path, "spaces.json has other spaces|other spaces than .*spaces.json has")


@pytest.mark.parametrize("change", [{"threads": 1}, {"runs_dir": "/elsewhere"}, {"name": "other"}, {"wandb": False}])
def test_settings_that_no_result_depends_on_may_change(change, tmp_path):
    path = made_run(tmp_path, "r", done=2)
    edit(path / "config.json", **change)
    moved = path.rename(tmp_path / "moved")
    assert load_policy(moved).steps == 600


def test_what_it_belongs_to_is_covered_by_the_checksum(tmp_path):
    path = checkpoint(made_run(tmp_path, "r", done=2))
    data = path.read_bytes()
    number = load_file(path).about["run"].encode()
    path.write_bytes(data.replace(number, number[::-1]))
    with pytest.raises(Damaged, match="checksum"):
        load_file(path)


def test_a_memory_is_no_checkpoint_and_the_one_before_is_used(tmp_path, capsys):
    path = made_run(tmp_path, "r", "mice-cpo", done=2)
    file = load_file(checkpoint(path))
    Checkpoints(path / "checkpoints", "memory").save(3, file.arrays)
    assert load_policy(path).steps == 600
    assert "is a memory and no checkpoint; the one before is used" in capsys.readouterr().err


def test_a_memory_of_another_run_is_refused(tmp_path):
    ours, theirs = (made_run(tmp_path, name, "mice-cpo", done=2) for name in "ab")
    for path in (ours, theirs):
        (path / "memories").mkdir()
        Checkpoints(path / "memories", "memory").save(2, load_file(checkpoint(path)).arrays)
    assert len(load_memory_snapshots(ours, load_config(ours))) == 1
    shutil.copy(theirs / "memories/000002.safetensors", ours / "memories")
    with pytest.raises(UsageError, match="belongs to another run"):
        load_memory_snapshots(ours, load_config(ours))


def test_runs_without_an_id_are_read_as_before(tmp_path):
    path = made_run(tmp_path, "r", done=2)
    saved = json.loads((path / "config.json").read_text())
    del saved["id"]
    (path / "config.json").write_text(json.dumps(saved))
    save_tree(checkpoint(path), load_file(checkpoint(path)).arrays)
    assert load_policy(path).steps == 600
    assert Checkpoints(path / "checkpoints").identity is None


@pytest.mark.parametrize("name", ["²", "1", "0000a1", "\u0660\u0660\u0660\u0660\u0660\u0667", "-00001"])
def test_other_names_are_no_checkpoints(name, tmp_path):
    path = made_run(tmp_path, "r", done=2)
    (path / "checkpoints" / f"{name}.safetensors").write_bytes(b"")
    assert Checkpoints(path / "checkpoints").iterations() == [2]
    assert np.isfinite(load_policy(path).params.log_std).all()
