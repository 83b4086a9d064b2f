"""Training on somebody else's environment, from start to end, through its worker processes."""

import numpy as np
import pytest
from rich.console import Console

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.errors import RunError
from flashbulb.storage.checkpoint import load_arrays
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import resume, train

WORLDS = "tests.envs.gym_examples"
SMALL = {
    "num_envs": 3,
    "steps_per_iteration": 60,
    "checkpoint_every": 1,
    "threads": 2,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "cost_limit": 1.0,
}
QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    config = configure("mice-cpo", f"{WORLDS}:make_six", runs_dir=tmp_path_factory.mktemp("runs"), steps=180, **SMALL)
    return train(config, QUIET)


def test_processes_and_one_after_the_other_learn_the_same(trained, tmp_path):
    config = configure("mice-cpo", f"{WORLDS}:make_six", runs_dir=tmp_path, steps=180, vectorise="serial", **SMALL)
    serial = train(config, QUIET)
    assert (serial.directory / "metrics.csv").read_bytes() == (trained.directory / "metrics.csv").read_bytes()
    assert trained.metrics["episodes"].sum() >= 6


def test_a_run_that_lost_its_newest_checkpoint_ends_the_same(trained):
    """The members are in the middle of their episodes then; their workers replay them."""
    newest = trained.directory / "checkpoints" / "000003.safetensors"
    metrics, arrays = (trained.directory / "metrics.csv").read_bytes(), load_arrays(newest)
    assert load_arrays(trained.directory / "checkpoints" / "000002.safetensors")["env/length"].all()
    newest.unlink()
    resume(trained.directory, QUIET, trusted_env=f"{WORLDS}:make_six")
    assert (trained.directory / "metrics.csv").read_bytes() == metrics
    again = load_arrays(newest)
    assert set(again) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array, err_msg=name)


def test_the_policy_can_be_used_on_it(trained):
    policy = flashbulb.load_policy(trained.directory)
    env = flashbulb.make(f"{WORLDS}:make_six", 1, vectorise="serial")
    obs, _ = env.reset()
    assert env.single_action_space.contains(policy.predict(obs[0]))


def test_a_worker_that_dies_stops_the_run_and_leaves_its_checkpoint(tmp_path):
    config = configure("mice-cpo", f"{WORLDS}:broken_dies", runs_dir=tmp_path, name="r", steps=180, **SMALL)
    with pytest.raises(
        RunError, match=r"iteration 1: worker process \d+, which ran environments 0 to 0 .*\(exit code 3\)"
    ):
        train(config, QUIET)  # an iteration takes twenty steps of each, and the environment dies in its 26th
    assert read_csv(tmp_path / "r" / "metrics.csv")["iteration"].tolist() == [0]
    assert flashbulb.load_policy(tmp_path / "r").steps == 60
