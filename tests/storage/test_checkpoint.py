"""Names in checkpoint files are fixed, files of format 1 are read, and those of a newer format are refused."""

import json

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save

from flashbulb.analysis.memory_snapshots import load_memory_snapshots
from flashbulb.analysis.trained_policy import load_policy
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import (
    STATE_NAMES,
    Checkpoints,
    Damaged,
    checksum,
    file_name,
    load_arrays,
    read_fields,
    save_tree,
    unflatten,
)
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import load_config
from flashbulb.training.loop import resume
from tests.training.small_run import made_run

# A rename of a Python field must not change this list: add the field to STATE_NAMES instead.
COMMON = {
    *(f"policy/mean/{layer}/{kind}" for layer in range(3) for kind in ("weight", "bias")),
    "policy/log_std",
    *(f"critics/networks/{layer}/{kind}" for layer in range(3) for kind in ("weight", "bias")),
    *(
        f"critics/optimiser/{m}/{layer}/{kind}"
        for m in ("mu", "nu")
        for layer in range(3)
        for kind in ("weight", "bias")
    ),
    "critics/optimiser/count",
    *(f"normaliser/{name}" for name in ("count", "mean", "variance")),
    *(f"memory/{name}" for name in ("states", "iterations", "projection", "mean_squared_distance")),
    *(f"memory/{name}" for name in ("lidar_groups", "salience")),
    *(f"balance/{name}" for name in ("b", "updates")),
    *(f"running/{name}" for name in ("observations", "returns", "costs", "lengths")),
    *(f"totals/{name}" for name in ("iterations", "steps", "episodes", "cost", "violations", "excess")),
}
ADAM = {
    *(f"policy_optimiser/1/{m}/mean/{n}/{k}" for m in ("mu", "nu") for n in range(3) for k in ("weight", "bias")),
    *(f"policy_optimiser/1/{name}" for name in ("mu/log_std", "nu/log_std", "count")),
}
PID = {f"multiplier/{name}" for name in ("integral", "smoothed_excess", "smoothed_costs", "steps")}
OWN = {
    "mice-cpo": set(),
    "mice-pid": ADAM | PID,
    "cup": {name.replace("policy_optimiser/", f"policy_optimiser/{step}/") for name in ADAM for step in (0, 1)}
    | {"multiplier/lam", *(f"multiplier/adam/{name}" for name in ("mu", "nu", "count"))},
    "simmer-pid": ADAM | {f"budget/{name}" for name in ("budget", "integral", "error", "steps")},
}
FORMAT_1 = {"policy": "learner/policy", "critics": "learner/critics", "policy_optimiser": "learner/optimiser"}
FORMAT_1 |= {"multiplier": "learner/multiplier", "budget": "learner/schedule", "running": "flight"}
FORMAT_1 |= {"normaliser/count": "normaliser/seen", "memory/lidar_groups": "memory/rings"}


def newest(run):
    return max((run / "checkpoints").glob("*.safetensors"))


def metadata(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["flashbulb"])


def to_format_1(run):
    """Rewrite a run as the version before formats would have written it."""
    config = json.loads((run / "config.json").read_text())
    assert config.pop("format") == 3
    assert config.pop("id")
    config["config"] = {"recipe": config["config"].pop("algorithm"), **config["config"]}
    (run / "config.json").write_text(json.dumps(config))
    old = {file_name(name, FORMAT_1): array for name, array in load_arrays(newest(run)).items()}
    newest(run).write_bytes(save(old, metadata={"sha256": checksum(old)}))
    return run


@pytest.mark.parametrize("algorithm", OWN)
def test_names_in_files_do_not_change(algorithm, tmp_path):
    path = newest(made_run(tmp_path, "r", algorithm, policy={"hidden": (4, 4)}, critic={"hidden": (4, 4)}))
    assert {name for name in load_arrays(path) if not name.startswith("env/")} == COMMON | OWN[algorithm]
    assert metadata(path)["format"] == 3


def test_a_renamed_field_keeps_its_name_in_the_file(tmp_path):
    save_tree(tmp_path / "a", {"old": {"x": np.array(1.0)}, "same": np.array(2.0)}, {"old": "fixed"})
    arrays = load_arrays(tmp_path / "a")
    assert set(arrays) == {"fixed/x", "same"}
    found = unflatten(arrays, {"new": {"y": 0}, "same": 0}, {"new/y": "fixed/x"}, tmp_path / "a")
    assert (found["new"]["y"], found["same"]) == (1.0, 2.0)
    with pytest.raises(UsageError, match="does not belong to this algorithm and task"):
        unflatten(arrays, {"new": {"y": 0}}, {"new/y": "fixed/x"}, tmp_path / "a")


def test_equal_states_make_equal_files(tmp_path):
    for k in range(8):
        save_tree(tmp_path / str(k), {"b": np.ones(3), "a": np.zeros(2)})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_the_longest_prefix_counts_and_names_are_whole_parts():
    names = {"a": "x", "a/b": "y"}
    assert [file_name(path, names) for path in ("a", "a/b/c", "a/c", "ab/c")] == ["x", "y/c", "x/c", "ab/c"]


def test_reading_a_file_with_its_own_names_as_paths_changes_nothing():
    for name in STATE_NAMES.values():
        assert file_name(name, STATE_NAMES) == name


def test_a_field_with_a_default_may_be_missing(tmp_path):
    from flashbulb.memory import FlashbulbMemory

    arrays = load_arrays(newest(made_run(tmp_path, "r", "mice-cpo")))
    full = read_fields(arrays, FlashbulbMemory, "memory")
    np.testing.assert_array_equal(full.lidar_groups, arrays.pop("memory/lidar_groups"))
    assert read_fields(arrays, FlashbulbMemory, "memory").lidar_groups.shape == (0, 2)
    del arrays["memory/states"]
    with pytest.raises(KeyError):
        read_fields(arrays, FlashbulbMemory, "memory")


@pytest.mark.parametrize("algorithm", ["mice-cpo", "simmer-pid", "cup"])
def test_runs_of_format_1_are_read(algorithm, tmp_path):
    run = made_run(tmp_path, "r", algorithm)
    obs = np.random.default_rng(0).normal(size=(5, *load_policy(run).observation_space.shape))
    config, arrays, policy = load_config(run), load_arrays(newest(run)), load_policy(run)
    to_format_1(run)
    assert load_config(run) == config
    again = load_arrays(newest(run))
    assert set(again) == set(arrays)
    np.testing.assert_array_equal(load_policy(run).predict(obs), policy.predict(obs))
    assert (load_policy(run).budget, load_policy(run).steps) == (policy.budget, policy.steps)
    if algorithm == "mice-cpo":
        assert [snapshot.done for snapshot in load_memory_snapshots(run, config)] == [4]


def test_a_newer_format_is_one_sentence(tmp_path):
    run = made_run(tmp_path, "r")
    path, arrays = newest(run), load_arrays(newest(run))
    path.write_bytes(save(arrays, metadata={"flashbulb": json.dumps({"format": 4, "sha256": "of another kind"})}))
    with pytest.raises(UsageError, match=r"000004.safetensors has format 4; .* reads formats up to 3\.$") as caught:
        load_policy(run)
    assert not isinstance(caught.value, Damaged), "it must not be renamed as damaged by resume"
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"format": 4}))
    with pytest.raises(UsageError, match=r"config.json has format 4; .* reads formats up to 3\.$"):
        load_config(run)
    for wrong in (None, "two", []):
        (run / "config.json").write_text(json.dumps(config | {"format": wrong}))
        with pytest.raises(UsageError, match="cannot be read"):
            load_config(run)


def test_a_run_of_format_1_is_resumed_as_one_of_today(tmp_path):
    """The state is restored to the last bit; columns that the old file does not have are added to it."""
    runs = [made_run(tmp_path, name, "mice-cpo", iterations=3, done=2) for name in ("two", "one")]
    for run in runs:  # a made run has a random state of Adam, with negative variances
        arrays = load_arrays(newest(run))
        zeros = {name: np.zeros_like(a) if "optimiser" in name else a for name, a in arrays.items()}
        Checkpoints(newest(run).parent).save(2, zeros)
    to_format_1(runs[1])
    for run in runs:
        resume(run, Console(quiet=True))
    two, one = (load_arrays(newest(run)) for run in runs)
    assert set(one) == set(two)
    for name, array in two.items():
        np.testing.assert_array_equal(one[name], array, err_msg=name)
    rows = [read_csv(run / "metrics.csv") for run in runs]
    np.testing.assert_equal(rows[1], rows[0])
    assert np.isnan(rows[1]["kl"]).tolist() == [True, True, False]
    assert metadata(newest(runs[1]))["format"] == 3
