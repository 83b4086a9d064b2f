"""The budget in the observation: by hand, across the end of an episode, and through a snapshot."""

import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.envs import CostVectorEnv, make
from flashbulb.envs.budget_wrapper import BudgetWrapper, discounted_share
from flashbulb.errors import UsageError
from tests.algorithms.corridor import STEPS, Corridor

RIGHT, LEFT = np.ones((2, 1)), -np.ones((2, 1))


def walk(env, steps, action=RIGHT):
    return [env.step(action) for _ in range(steps)]


def test_each_cost_takes_its_share():
    env = BudgetWrapper(Corridor(2), limit=10.0, budget=10.0, discount=1.0)
    first, _ = env.reset(seed=0)
    np.testing.assert_array_equal(first[:, -1], 1.0)
    z = np.array([obs[0, -1] for obs, *_ in walk(env, STEPS - 1)])
    costly = np.maximum(np.arange(1, STEPS) - 5, 0)  # the first five steps lead to the edge
    np.testing.assert_allclose(z, np.maximum(1 - costly / 10, -1), rtol=1e-6)


def test_the_final_observation_shows_what_was_left_of_its_own_episode():
    env = BudgetWrapper(Corridor(2), limit=50.0, budget=50.0, discount=1.0)
    env.reset(seed=0)
    *_, (obs, _, _, _, truncated, info) = walk(env, STEPS)
    assert truncated.all()
    np.testing.assert_allclose(info["final_obs"][:, -1], 1 - 35 / 50)
    np.testing.assert_array_equal(obs[:, -1], 1.0)


def test_new_episodes_get_the_scheduled_budget_and_running_ones_keep_theirs():
    env = BudgetWrapper(Corridor(2), limit=20.0, budget=10.0, discount=1.0)
    first, _ = env.reset(seed=0)
    np.testing.assert_array_equal(first[:, -1], 0.5)
    walk(env, 3, LEFT)
    env.set_budget(4.0)
    results = walk(env, STEPS - 3, LEFT)
    np.testing.assert_array_equal(results[0][0][:, -1], 0.5)
    np.testing.assert_array_equal(results[-1][5]["final_obs"][:, -1], 0.5)
    np.testing.assert_allclose(results[-1][0][:, -1], 0.2)


def test_exactly_the_limit_is_within_it():
    """35 costs of 1 out of 35: in steps of 1/35, rounding would decide."""
    env = BudgetWrapper(Corridor(2), limit=35.0, budget=35.0, discount=1.0)
    env.reset(seed=0)
    assert walk(env, STEPS)[-1][5]["final_obs"][0, -1] == 0.0


def test_a_limit_of_zero_is_spent_by_the_first_cost():
    env = BudgetWrapper(Corridor(2), limit=0.0, budget=0.0, discount=1.0)
    env.reset(seed=0)
    z = [obs[0, -1] for obs, *_ in walk(env, 7)]
    np.testing.assert_array_equal(z, [0, 0, 0, 0, 0, -1, -1])


def test_a_discounted_budget():
    env = BudgetWrapper(Corridor(2), limit=20.0, budget=20.0, discount=0.99)
    env.reset(seed=0)
    share = sum(0.99**t for t in range(STEPS)) / STEPS
    assert discounted_share(0.99, STEPS) == pytest.approx(share)
    assert discounted_share(1.0, STEPS) == 1.0
    results = walk(env, 8)
    paid = sum(0.99**t * cost[0] for t, (_, _, cost, *_) in enumerate(results))
    # left * gamma^t = start - discounted costs so far
    assert results[-1][0][0, -1] * 0.99**8 == pytest.approx(share - paid / 20, rel=1e-5)


def test_it_keeps_the_contract_and_a_snapshot_brings_everything_back():
    env = BudgetWrapper(make("HazardField-v0", 3, 0, 1), limit=25.0, budget=25.0, discount=0.999)
    assert isinstance(env, CostVectorEnv)
    obs, _ = env.reset(seed=5)
    assert env.single_observation_space.contains(obs[0])
    actions = np.random.default_rng(0).uniform(-1, 1, (60, 3, 2))
    for a in actions[:30]:
        env.step(a)
    env.set_budget(10.0)
    state = env.get_state()
    assert all(len(rows) == 3 for rows in state.values())
    future = [env.step(a)[0] for a in actions[30:]]
    after = env.reset(seed=1)[0]

    other = BudgetWrapper(make("HazardField-v0", 3, 9, 1), limit=25.0, budget=25.0, discount=0.999)
    other.set_state(state)
    for a, expected in zip(actions[30:], future, strict=True):
        np.testing.assert_array_equal(other.step(a)[0], expected)
        np.testing.assert_array_equal(other.observe(), expected)
    np.testing.assert_array_equal(other.reset(seed=1)[0], after)
    some = env.get_state(np.array([2]))
    other.set_state(some, np.array([0]))
    np.testing.assert_array_equal(other.observe()[0], env.observe()[2])


def test_observations_that_cannot_carry_it_are_refused():
    env = Corridor(2)
    env.single_observation_space = spaces.Dict({"x": spaces.Box(-1, 1, (2,))})
    with pytest.raises(UsageError, match="observations of Dict"):
        BudgetWrapper(env, 25.0, 25.0, 1.0)
