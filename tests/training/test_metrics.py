"""The rows of metrics.csv and episodes.csv, number by number, for one cost and for two."""

import numpy as np
import pytest

from flashbulb.batch import Batch, EpisodeMeans, FinishedEpisodes
from flashbulb.config import MemoryConfig
from flashbulb.memory import FlashbulbMemory, anticipation
from flashbulb.training.metrics import Totals, episode_rows, metrics_row

TIME, ENVS = 12, 2
LIMITS = {"a": 10.0, "b": 2.0}
RNG = np.random.default_rng(0)
INTRINSIC = RNG.random((TIME, ENVS))
ENDED = np.zeros((TIME, ENVS), bool)
ENDED[[3, 7], [1, 0]] = True


def batch_of(iteration, cost, costs, finished, estimated=False, error=0.5, **known):
    costs, finished = np.asarray(costs, np.float32), np.asarray(finished, float)
    count = len(finished)
    episodes = FinishedEpisodes(
        np.array([3, 7])[:count], np.array([1, 0])[:count], np.array([1.5, -2.0])[:count], finished,
        np.array([4, 8])[:count],
    )  # fmt: skip
    means = EpisodeMeans(-0.25, cost, 6.0, estimated, error)
    nothing = np.zeros(0)
    samples = nothing, nothing, nothing, nothing, costs, nothing, ENDED
    return Batch(iteration, *samples, None, episodes=episodes, means=means, **known)


def memory_of(states):
    config = MemoryConfig()
    return FlashbulbMemory.empty(1, config, np.random.default_rng(0)).add(np.zeros((states, 1)), 0, config)


def one_cost(iteration, cost, finished, **known):
    costs = np.zeros((TIME, ENVS))
    costs[[2, 5, 9], [0, 1, 1]] = 1.0, 2.0, 4.0
    return batch_of(iteration, cost, costs, finished, intrinsic=INTRINSIC, beta=np.array([0.5, 1.5]), **known)


def test_totals_and_the_row_of_one_cost():
    """The limit of 10 is exceeded by 5 in the second of three iterations."""
    totals = Totals.start()
    for n, cost in enumerate((10.0, 15.0, 4.0)):
        batch = one_cost(n, cost, [3.0, 6.0])
        totals = totals.add(batch, 10.0)
    assert (totals.iterations, totals.steps, totals.episodes) == (3, 3 * TIME * ENVS, 6)
    assert (totals.cost, totals.violations, totals.excess) == (21.0, 1.0, 5.0)
    memory = memory_of(7)
    row = metrics_row(batch, totals, memory, {"kl": 0.1}, 10.0)
    assert row.pop("anticipation") == anticipation(INTRINSIC, batch.costs, ENDED)
    assert row == {
        "iteration": 2, "steps": 72, "return": -0.25, "cost": 4.0, "cost_standard_error": 0.5, "finished_cost": 4.5,
        "length": 6.0, "episodes": 2, "episode_estimated": 0, "violation_rate": pytest.approx(1 / 3),
        "mean_excess": pytest.approx(5 / 3), "cost_rate": pytest.approx(21 / 72), "beta": 1.0,
        "intrinsic_cost": pytest.approx(INTRINSIC.mean()), "memory_size": 7, "kl": 0.1,
    }  # fmt: skip


def test_without_episodes_and_memory_some_columns_are_empty():
    batch = one_cost(0, 4.0, [], estimated=True)
    row = metrics_row(batch, Totals.start().add(batch, 10.0), memory_of(0), {}, 10.0)
    assert np.isnan(row["finished_cost"])
    assert np.isnan(row["anticipation"])
    assert (row["episodes"], row["episode_estimated"]) == (0, 1)


def two_costs(iteration, cost, finished):
    costs = np.zeros((TIME, ENVS, 2))
    costs[[2, 5, 9], [0, 1, 1]] = (1.0, 10.0), (2.0, 0.0), (4.0, 20.0)
    return batch_of(
        iteration, np.array(cost), costs, finished, error=np.array([0.5, 0.25]),
        intrinsic=np.stack([INTRINSIC, 2 * INTRINSIC], axis=-1), beta=np.array([1.0, 3.0]),
    )  # fmt: skip


def test_totals_and_the_row_of_two_costs():
    """The second is above its limit twice, by 1 and by 2, and leads then; the first once, by 5."""
    totals = Totals.start(2)
    for n, cost in enumerate(((4.0, 3.0), (15.0, 4.0), (9.0, 1.0))):
        batch = two_costs(n, cost, [[3.0, 1.0], [6.0, 2.0]])
        totals = totals.add(batch, LIMITS)
    assert (totals.iterations, totals.steps, totals.episodes) == (3, 72, 6)
    assert (totals.cost, totals.violations, totals.excess) == (3 * 37.0, 2.0, 3.0)
    for found, expected in zip(totals.each, ([21.0, 90.0], [1.0, 2.0], [5.0, 3.0]), strict=True):
        np.testing.assert_allclose(found, expected)
    memories = {"a": memory_of(7), "b": memory_of(0)}
    row = metrics_row(batch, totals, memories, {"cost_value": np.array([0.1, 0.2])}, LIMITS)
    assert row.pop("anticipation_a") == anticipation(INTRINSIC, batch.costs[..., 0], ENDED)
    assert np.isnan(row.pop("anticipation_b"))
    mean = INTRINSIC.mean()
    assert row == {
        "iteration": 2, "steps": 72, "return": -0.25, "cost": 9.0, "limit": 10.0, "cost_a": 9.0, "cost_b": 1.0,
        "cost_standard_error_a": 0.5, "cost_standard_error_b": 0.25, "finished_cost_a": 4.5, "finished_cost_b": 1.5,
        "length": 6.0, "episodes": 2, "episode_estimated": 0, "violation_rate": pytest.approx(2 / 3),
        "mean_excess": pytest.approx(1.0), "cost_rate": pytest.approx(111 / 72),
        "violation_rate_a": pytest.approx(1 / 3), "violation_rate_b": pytest.approx(2 / 3),
        "mean_excess_a": pytest.approx(5 / 3), "mean_excess_b": pytest.approx(1.0),
        "cost_rate_a": pytest.approx(21 / 72), "cost_rate_b": pytest.approx(90 / 72), "memory_size": 7,
        "beta_a": 1.0, "beta_b": 3.0, "intrinsic_cost_a": pytest.approx(mean),
        "intrinsic_cost_b": pytest.approx(2 * mean), "memory_size_a": 7, "memory_size_b": 0,
        "cost_value_a": pytest.approx(0.1), "cost_value_b": pytest.approx(0.2),
    }  # fmt: skip


def test_a_row_for_every_episode():
    rows = episode_rows(one_cost(4, 1.0, [3.0, 6.0]), 100, 10.0)
    assert rows == [
        {"iteration": 4, "steps": 108, "env": 1, "return": 1.5, "cost": 3.0, "length": 4},
        {"iteration": 4, "steps": 116, "env": 0, "return": -2.0, "cost": 6.0, "length": 8},
    ]
    first, second = episode_rows(two_costs(4, [1.0, 1.0], [[3.0, 1.0], [6.0, 1.0]]), 100, LIMITS)
    assert (first["cost"], first["cost_a"], first["cost_b"]) == (1.0, 3.0, 1.0)  # -70 % and -50 %: the second leads
    assert (second["cost"], second["cost_a"], second["cost_b"]) == (6.0, 6.0, 1.0)
