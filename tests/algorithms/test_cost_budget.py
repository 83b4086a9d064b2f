"""Saute's reward and Simmer's schedule, by hand."""

import numpy as np
import pytest

from flashbulb.algorithms.cost_budget import BudgetSchedule, reshaped_reward, simmer_step
from flashbulb.config import BudgetConfig


def test_reward_ends_where_the_budget_does():
    rewards = np.array([[1.0, 2.0], [3.0, 4.0]])
    z = np.array([[0.5, 0.0], [-0.01, -1.0]])
    next_observations = np.stack([np.full((2, 2), -9.0), z], axis=-1)
    ours = reshaped_reward(rewards, next_observations, BudgetConfig(unsafe_reward=-0.3))
    np.testing.assert_allclose(ours, [[1.0, 2.0], [-0.3, -0.3]])


def budgets(costs, config, limit=25.0, start=10.0):
    state, out = BudgetSchedule.start(start), []
    for cost in costs:
        state = simmer_step(state, np.float32(cost), limit, config)
        out.append(float(state.budget))
    return np.array(out), state


def test_schedule_by_hand():
    config = BudgetConfig(proportional=0.1, integral=0.01, derivative=0.5)
    # error 6, integral 6, change 0 (nothing came before):       10    + 0.6     + 0.06
    first = 10.66
    # error 4.66, integral 10.66, change -1.34:
    second = first + 0.466 + 0.1066 - 0.67
    ours, _ = budgets([4.0, 6.0], config)
    np.testing.assert_allclose(ours, [first, second], rtol=1e-5)


def test_a_smoothed_error():
    config = BudgetConfig(proportional=0.1, integral=0.0, smooth=0.75)
    first = 10 + 0.1 * 4
    second = first + 0.1 * (0.75 * 4 + 0.25 * (first - 20))
    np.testing.assert_allclose(budgets([6.0, 20.0], config)[0], [first, second], rtol=1e-5)


def test_it_stays_between_its_bounds():
    config = BudgetConfig(proportional=0.5, integral=0.1, lowest=0.2)
    safe, at_limit = budgets([0.0] * 200, config)
    assert safe.max() == 25.0
    assert (np.diff(safe) >= 0).all()
    # No windup at the limit: one bad batch lowers the budget at once.
    assert float(simmer_step(at_limit, np.float32(60), 25.0, config).budget) < 25.0
    unsafe, at_floor = budgets([80.0] * 200, config)
    assert unsafe.min() == pytest.approx(5.0)
    assert float(simmer_step(at_floor, np.float32(0), 25.0, config).budget) > 5.0
