"""Accounting of episodes across iterations against a plain loop, and what `collect` makes of them."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.policy import policy_for
from flashbulb.config import PolicyConfig
from flashbulb.errors import RunError
from flashbulb.normaliser import Normaliser
from flashbulb.training.batch_means import RunningEpisodes
from flashbulb.training.collect import Sampler, account, collect
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
