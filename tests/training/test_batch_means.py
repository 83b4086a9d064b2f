"""J_C of all steps of a batch, the mean length of an episode that it needs, and its standard error."""

import numpy as np
import pytest

from flashbulb.batch import Batch, EpisodeMeans
from flashbulb.normaliser import Normaliser
from flashbulb.training.batch_means import cost_error, mean_length, step_ages, step_means


def batch_of(costs, ended=None, rewards=None, terminated=None):
    costs = np.asarray(costs, np.float32)
    ended = np.zeros(costs.shape, bool) if ended is None else np.asarray(ended, bool)
    terminated = np.zeros(costs.shape, bool) if terminated is None else np.asarray(terminated, bool)
    rewards = np.zeros_like(costs) if rewards is None else np.asarray(rewards, np.float32)
    empty = np.zeros((*costs.shape, 1), np.float32)
    return Batch(0, empty, empty, empty, rewards, costs, terminated, ended, Normaliser.empty(1).frozen())


# Two environments, four steps. Columns are environments.
COSTS = [[1, 0], [0, 2], [1, 0], [0, 0]]
REWARDS = [[1, 2], [3, 4], [5, 6], [7, 8]]


@pytest.mark.parametrize(("length", "returns", "cost"), [(8.0, 36.0, 4.0), (20.0, 90.0, 10.0), (2.0, 9.0, 1.0)])
def test_the_means_by_hand(length, returns, cost):
    """Eight steps with a cost of 4 and a reward of 36 are one episode of 8, 0.4 of one of 20, four of 2."""
    assert step_means(batch_of(COSTS, rewards=REWARDS), length) == EpisodeMeans(returns, cost, length, False)


def test_ages_against_a_plain_loop():
    rng = np.random.default_rng(0)
    ended, began = rng.random((40, 5)) < 0.1, rng.integers(0, 30, 5)
    ages, age = np.zeros(ended.shape, int), began.copy()
    for t in range(len(ended)):
        ages[t] = age
        age = np.where(ended[t], 0, age + 1)
    np.testing.assert_array_equal(step_ages(ended, began), ages)


def test_the_length_by_hand():
    """Episodes of at most 6. There are 3, 3, 1 and 1 steps at the ages 0 to 3; one robot falls at age 1, one at age 3.

    All get to ages 0 and 1, two of three to 2 and 3, none to 4.
    """
    terminated = [[0, 0], [1, 1], [0, 0], [0, 0]]
    batch = batch_of(np.zeros((4, 2)), terminated, terminated=terminated)
    np.testing.assert_array_equal(step_ages(batch.ended, [0, 2]), [[0, 2], [1, 3], [0, 0], [1, 1]])
    assert mean_length(batch, np.array([0, 2]), 6) == pytest.approx(1 + 1 + 2 / 3 + 2 / 3)


def test_what_is_cut_in_time_has_full_length_however_much_of_it_falls_into_a_batch():
    for ends in (0, 1, 5):
        ended = np.zeros((10, 5), bool)
        ended[3, :ends] = True
        assert mean_length(batch_of(np.zeros((10, 5)), ended), np.full(5, 46), 50) == 50.0


EPISODE, ENVS, STEPS = 100, 50, 20


def falling(age):
    """A robot that falls at the start, and now and then later."""
    return np.where(age < 10, 0.04, 0.004)


def paid(age):
    return (age >= 10) * 0.2  # it has to get up speed first


@pytest.mark.parametrize("staggered", [True, False])
def test_the_length_is_that_of_the_policy_and_not_what_happens_to_end(staggered):
    """Against the exact mean. Where the clocks are not spread, batches are of one age, and their ends say nothing."""
    rng = np.random.default_rng(0)
    ages = np.arange(EPISODE)
    alive = np.concatenate([[1.0], np.cumprod(1 - falling(ages))[:-1]])
    length, cost = alive.sum(), (alive * paid(ages)).sum()
    age = ages[:: EPISODE // ENVS].copy() if staggered else np.zeros(ENVS, int)
    lengths, costs, counted = [], [], []
    for n in range(500):
        began, paid_now = age.copy(), np.zeros((STEPS, ENVS))
        terminated, ended = np.zeros((2, STEPS, ENVS), bool)
        for t in range(STEPS):
            paid_now[t] = paid(age)
            terminated[t] = rng.random(ENVS) < falling(age)
            ended[t] = terminated[t] | (age == EPISODE - 1)
            age = np.where(ended[t], 0, age + 1)
        if n >= 20:  # the first ages are not those of running episodes
            batch = batch_of(paid_now, ended, terminated=terminated)
            lengths.append(mean_length(batch, began, EPISODE))
            costs.append(step_means(batch, lengths[-1]).cost)
            counted.append(batch.cost_sums / max(ended.sum(), batch.size / EPISODE))
    assert np.mean(lengths) == pytest.approx(length, rel=0.03)
    assert np.mean(costs) == pytest.approx(cost, rel=0.03)
    assert np.std(costs) < 0.8 * np.std(counted)  # where ends are counted


def test_the_error_of_the_cost_by_hand():
    """Sums 2 and 2, or 2 and 4: var((2, 4), ddof 1) = 2, the variance of their sum is 2 * 2, its root is 2."""
    assert cost_error(batch_of(COSTS), 8) == 0.0
    uneven = [[1, 0], [0, 2], [1, 2], [0, 0]]
    assert cost_error(batch_of(uneven), 8) == pytest.approx(2.0)
    assert cost_error(batch_of(uneven), 16) == pytest.approx(4.0)  # in half an episode
    assert cost_error(batch_of(uneven), 2) == pytest.approx(0.5)  # in four


def test_one_environment_tells_no_error():
    assert cost_error(batch_of([[1], [5]]), 8) == 0.0


@pytest.mark.parametrize(("envs", "steps", "length"), [(20, 50, 50), (40, 10, 50), (30, 40, 10)])
def test_the_error_of_the_cost_is_the_spread_over_many_batches(envs, steps, length):
    """Costs come in clusters: some layouts are dangerous, and danger lasts. Were every step taken for independent, the
    error would be a small part of the spread."""
    rng = np.random.default_rng(0)
    found, errors, naive = [], [], []
    for _ in range(800):
        danger = rng.gamma(0.5, 1.0, envs)  # of each environment's layout
        costs = (rng.random((steps, envs)) < 0.3 * np.minimum(danger, 2)).astype(np.float32)
        batch = batch_of(costs)
        found.append(step_means(batch, length).cost)
        errors.append(cost_error(batch, length))
        naive.append(np.sqrt(costs.size * costs.var()) * length / batch.size)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(found), rel=0.1)
    assert np.mean(naive) < 0.7 * np.std(found)
