"""Runs whose memory is filled in other ways: by expected cost, and from a data set."""

import numpy as np
import pytest
from gymnasium import spaces
from rich.console import Console

from flashbulb.algorithms.policy import Categorical, Gaussian
from flashbulb.algorithms.registry import configure
from flashbulb.envs import make
from flashbulb.errors import UsageError
from flashbulb.normaliser import FrozenNormaliser
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.collect import Sampler
from flashbulb.training.iteration import log_likelihood
from flashbulb.training.loop import train
from tests.algorithms.actor_batches import example, log_density

SMALL = {
    "steps": 2_000,
    "num_envs": 4,
    "steps_per_iteration": 1_000,
    "policy": {"hidden": (8,)},
    "critic": {"hidden": (8,), "passes": 1},
}


def run(tmp_path, **memory):
    config = configure("mice-cpo", "HazardField-v0", runs_dir=tmp_path, memory=memory, seed=3, **SMALL)
    return read_csv(train(config, Console(quiet=True)).directory / "metrics.csv")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Transitions of random actions on the task."""
    env, rng = make("HazardField-v0", 50, 0), np.random.default_rng(0)
    rows, (obs, _) = [], env.reset(seed=9)
    for _ in range(100):
        action = rng.uniform(-1, 1, (50, 2))
        following, _, cost, *_ = env.step(action)
        rows.append((obs, action, cost))
        obs = following
    observations, actions, costs = (np.concatenate(part) for part in zip(*rows, strict=True))
    path = tmp_path_factory.mktemp("data") / "record.npz"
    np.savez(path, observations=observations, actions=actions, costs=costs)
    return path, int((costs > 0).sum())


def test_the_unsafe_states_of_a_data_set_join_the_memory(record, tmp_path):
    path, unsafe = record
    without, with_it = run(tmp_path), run(tmp_path, offline=str(path))
    np.testing.assert_array_equal(with_it["memory_size"][0], without["memory_size"][0] + unsafe)
    assert "offline_ess" not in without
    assert ((with_it["offline_ess"] > 1) & (with_it["offline_ess"] <= unsafe)).all()
    assert with_it["intrinsic_cost"][0] > without["intrinsic_cost"][0]


def test_a_data_set_that_does_not_fit_is_refused_before_the_run_begins(tmp_path):
    np.savez(tmp_path / "other.npz", observations=np.zeros((5, 2)), actions=np.zeros((5, 2)), costs=np.ones(5))
    with pytest.raises(UsageError, match=r"memory\.offline: .*must have \(5, 35\)"):
        run(tmp_path / "runs", offline=str(tmp_path / "other.npz"))
    assert not (tmp_path / "runs").exists()


def test_a_lower_threshold_remembers_more_and_none_of_it_by_cost_alone(tmp_path):
    sizes = [run(tmp_path, criterion="return", threshold=t)["memory_size"][0] for t in (0.5, 5.0, 1e6)]
    assert sizes[0] > sizes[1] > sizes[2] == 0


def test_the_likelihood_is_that_of_the_environments_actions():
    """Bounds of [-3, 1]: the policy's own action is (a + 1) / 2."""
    params, batch = example()
    policy = Gaussian(spaces.Box(-3.0, 1.0, (2,), np.float32))
    normalise = FrozenNormaliser(np.float32(0.5), np.float32(2.0))
    inside = np.clip(batch.actions, -1, 1)
    log_pi = log_likelihood(Sampler(policy, params, normalise))
    found = log_pi(batch.observations / 2 + 0.5, policy.to_env(inside))
    np.testing.assert_allclose(found, log_density(params, batch.observations, inside), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(policy.from_env(policy.to_env(inside)), inside, atol=1e-6)
    buttons = Categorical(spaces.Discrete(4, start=7))
    assert buttons.from_env(buttons.to_env(np.arange(4))).tolist() == [0, 1, 2, 3]
