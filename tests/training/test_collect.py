"""Accounting of episodes across iterations against a plain loop; J_C of all steps and its standard error."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.policy import policy_for
from flashbulb.batch import Batch, EpisodeMeans
from flashbulb.config import PolicyConfig
from flashbulb.errors import RunError
from flashbulb.normaliser import Normaliser
from flashbulb.training.collect import (
    RunningEpisodes,
    Sampler,
    account,
    collect,
    cost_error,
    episodes_that_fit,
    step_means,
)
from tests.algorithms.corridor import Corridor


def plain_loop(rewards, costs, ended):
    rows, sums = [], np.zeros((3, rewards.shape[1]))
    for t in range(len(rewards)):
        sums += [rewards[t], costs[t], np.ones(rewards.shape[1])]
        for m in np.flatnonzero(ended[t]):
            rows.append((t, m, *sums[:, m]))
            sums[:, m] = 0
    return rows, sums


def test_episodes_run_on_across_iterations_and_none_is_lost():
    rng = np.random.default_rng(0)
    shape = (90, 4)
    rewards, costs, ended = rng.standard_normal(shape), rng.random(shape), rng.random(shape) < 0.05
    running = RunningEpisodes.start(np.zeros((4, 2)))
    found = []
    for start in range(0, 90, 30):
        part = slice(start, start + 30)
        finished, running = account(rewards[part], costs[part], ended[part], running)
        found += [(start + row[0], *row[1:]) for row in zip(*finished, strict=True)]
    rows, sums = plain_loop(rewards, costs, ended)
    np.testing.assert_allclose(np.array(found), np.array(rows), rtol=1e-9)
    np.testing.assert_allclose([running.returns, running.costs, running.lengths], sums, rtol=1e-9)


def test_nothing_finished_is_an_empty_table_not_a_nan():
    finished, running = account(
        np.ones((5, 2)), np.ones((5, 2)), np.zeros((5, 2), bool), RunningEpisodes.start(np.zeros((2, 1)))
    )
    assert all(len(column) == 0 for column in finished)
    assert running.lengths.tolist() == [5, 5]


def batch_of(costs, ended, rewards=None):
    costs = np.asarray(costs, np.float32)
    ended = np.asarray(ended, bool)
    rewards = np.zeros_like(costs) if rewards is None else np.asarray(rewards, np.float32)
    empty = np.zeros((*costs.shape, 1), np.float32)
    return Batch(0, empty, empty, empty, rewards, costs, ended, ended, Normaliser.empty(1).frozen())


# Two environments, four steps; episodes have at most eight steps. Columns are environments.
COSTS = [[1, 0], [0, 2], [1, 0], [0, 0]]
REWARDS = [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_full_episodes_that_fit_into_the_steps():
    """Eight steps are one episode of at most eight, whether or not one ended: 4 of cost, 36 of reward."""
    for ends in (np.zeros((4, 2)), np.array([[0, 0], [0, 0], [0, 0], [0, 1]])):
        batch = batch_of(COSTS, ends, REWARDS)
        assert episodes_that_fit(batch, 8) == 1.0
        assert step_means(batch, 8) == EpisodeMeans(36.0, 4.0, 8.0, False)


def test_fractions_of_an_episode_count_as_such():
    """Eight steps of episodes of 20: a cost of 4 in 0.4 episodes is 10 in one."""
    means = step_means(batch_of(COSTS, np.zeros((4, 2)), REWARDS), 20)
    assert episodes_that_fit(batch_of(COSTS, np.zeros((4, 2))), 20) == pytest.approx(0.4)
    assert (means.cost, means.returns, means.length) == pytest.approx((10.0, 90.0, 20.0))


def test_early_terminations_are_episodes_of_their_own():
    """Four ends in eight steps of episodes of at most eight: four episodes of two steps and a cost of 1 each."""
    ends = [[0, 1], [1, 0], [0, 1], [1, 0]]
    batch = batch_of(COSTS, ends, REWARDS)
    assert episodes_that_fit(batch, 8) == 4.0
    assert step_means(batch, 8) == EpisodeMeans(9.0, 1.0, 2.0, False)


def test_the_error_of_the_cost_by_hand():
    """Sums 2 and 2, or 2 and 4: var((2, 4), ddof 1) = 2, the variance of their sum is 2 * 2, its root is 2."""
    assert cost_error(batch_of(COSTS, np.zeros((4, 2))), 8) == 0.0
    uneven = [[1, 0], [0, 2], [1, 2], [0, 0]]
    assert cost_error(batch_of(uneven, np.zeros((4, 2))), 8) == pytest.approx(2.0)
    assert cost_error(batch_of(uneven, np.zeros((4, 2))), 16) == pytest.approx(4.0)  # in half an episode
    assert cost_error(batch_of(uneven, [[0, 1], [1, 0], [0, 1], [1, 0]]), 8) == pytest.approx(0.5)  # in four


def test_one_environment_tells_no_error():
    assert cost_error(batch_of([[1], [5]], np.zeros((2, 1))), 8) == 0.0


@pytest.mark.parametrize(("envs", "steps", "ends_early"), [(20, 50, False), (40, 10, False), (30, 40, True)])
def test_the_error_of_the_cost_is_the_spread_over_many_batches(envs, steps, ends_early):
    """Costs come in clusters: some layouts are dangerous, and danger lasts. Were every step taken for independent, the
    error would be a small part of the spread."""
    rng, limit = np.random.default_rng(0), 50
    found, errors, naive = [], [], []
    for _ in range(800):
        danger = rng.gamma(0.5, 1.0, envs)  # of each environment's layout
        costs = (rng.random((steps, envs)) < 0.3 * np.minimum(danger, 2)).astype(np.float32)
        ended = np.zeros((steps, envs), bool)
        if ends_early:
            ended[9::10] = True
        batch = batch_of(costs, ended)
        found.append(step_means(batch, limit).cost)
        errors.append(cost_error(batch, limit))
        naive.append(np.sqrt(costs.size * costs.var()) / episodes_that_fit(batch, limit))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(found), rel=0.1)
    assert np.mean(naive) < 0.7 * np.std(found)


def always_right(env, estimate):
    """J_C of two batches of half an episode each."""
    policy = policy_for(env.single_observation_space, env.single_action_space)
    params = jax.tree.map(np.asarray, policy.init(jax.random.key(0), 2, PolicyConfig(hidden=(2,))))
    sampler = Sampler(policy, params, Normaliser.empty(2).frozen())
    running, noise = RunningEpisodes.start(env.observe()), np.full((20, 2, 1), 50.0, np.float32)
    first, running = collect(env, sampler, noise, running, 0, estimate)
    second, _ = collect(env, sampler, noise, running, 1, estimate)
    return first.means, second.means


def test_collect_estimates_the_cost_from_episodes_or_from_steps():
    """Always to the right, 35 of the 40 steps of an episode are beyond the corridor's edge, 15 of its first 20."""
    env = Corridor(2)
    env.reset(seed=0)
    first, second = always_right(env, "episodes")
    assert (first.cost, first.estimated) == (pytest.approx(30.0), True)  # twice what half an episode has cost
    assert (second.cost, second.estimated) == (pytest.approx(35.0), False)
    env.reset(seed=0)
    env.set_state({"x": np.zeros(2), "t": np.array([0, 20])})  # half an episode apart
    first, second = always_right(env, "steps")
    assert (first.cost, first.estimated) == (pytest.approx(15.0 + 15.0), False)
    assert second.cost == pytest.approx(20.0 + 15.0)  # one ends, the other begins
    assert first.cost_error == pytest.approx(0.0)
    assert second.cost_error == pytest.approx(np.sqrt(2 * np.var([20.0, 15.0], ddof=1)))


class Broken(Corridor):
    """Its reward in the second environment is not a number at the third step."""

    def step(self, actions):
        obs, reward, *rest = super().step(actions)
        reward[1] = np.nan if self._t[1] == 3 else reward[1]
        return obs, reward, *rest


def test_what_is_not_finite_is_named_with_its_step_and_environment():
    env = Broken(2)
    env.reset(seed=0)
    with pytest.raises(RunError, match=r"rewards that are not finite \(step 2 of the batch, environment 1\)"):
        always_right(env, "steps")
