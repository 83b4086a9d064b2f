"""What is unsafe: a cost, or for noisy costs what they add up to."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.advantages import cost_to_go
from flashbulb.algorithms.critics import init_critics, values
from flashbulb.config import CriticConfig, MemoryConfig
from flashbulb.memory import unsafe_states
from flashbulb.normaliser import Normaliser


def test_by_default_every_state_that_costs_something():
    costs = np.array([[0.0, 0.5], [2.0, 0.0]])
    assert unsafe_states(costs, None, MemoryConfig()).tolist() == [[False, True], [True, False]]


def test_with_noisy_costs_the_sum_decides():
    """A lone outlier is forgotten; the approach to a region that really costs is remembered."""
    costs = np.zeros(100)
    costs[20] = 1.0  # noise
    costs[60:70] = 1.0
    to_go = np.array([sum(0.9 ** (u - t) * costs[u] for u in range(t, 100)) for t in range(100)])
    unsafe = unsafe_states(costs, to_go, MemoryConfig(criterion="return", threshold=2.0))
    assert not unsafe[:40].any()
    assert unsafe[55:66].all()
    assert not unsafe[70:].any()


def test_the_cost_to_go_is_the_sampled_sum_with_the_critic_where_it_is_cut():
    rng = np.random.default_rng(0)
    steps, envs, gamma = 12, 2, 0.9
    critics = init_critics(jax.random.key(0), 3, 1, CriticConfig(hidden=(4,)))
    observations = rng.standard_normal((steps + 1, envs, 3)).astype(np.float32)
    following = observations[1:].copy()
    terminated, truncated = np.zeros((2, steps, envs), bool)
    terminated[5, 0] = truncated[7, 1] = True
    following[7, 1] = final = rng.standard_normal(3).astype(np.float32)
    costs = rng.random((steps, envs)).astype(np.float32)
    normalise = Normaliser.empty(3).absorb(observations).frozen()
    ends = terminated, terminated | truncated
    found = cost_to_go(critics, observations[:-1], following, costs, ends, normalise, gamma=gamma)

    def v(x):
        return float(values(critics, normalise(x))[1])

    assert float(found[0, 0]) == pytest.approx(sum(gamma**t * costs[t, 0] for t in range(6)), rel=1e-4)
    one = sum(gamma**t * costs[t, 1] for t in range(8)) + gamma**8 * v(final)
    assert float(found[0, 1]) == pytest.approx(one, rel=1e-4)
    cut = sum(gamma ** (t - 9) * costs[t, 1] for t in range(9, 12)) + gamma**3 * v(observations[12, 1])
    assert float(found[9, 1]) == pytest.approx(cut, rel=1e-4)
