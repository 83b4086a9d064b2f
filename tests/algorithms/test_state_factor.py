"""The authors' factor against a walk through every path, and the units of I by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from flashbulb.algorithms.intrinsic_return import intrinsic_return, path_returns
from flashbulb.algorithms.state_factor import state_factors
from flashbulb.config import BalanceConfig
from flashbulb.memory import Balance

RATE, SMOOTH, TIME, ENVS = 0.01, 0.1, 23, 3


def sampled(seed=0):
    rng = np.random.default_rng(seed)
    delta = rng.normal(size=(TIME, ENVS)).astype(np.float32)
    intrinsic = (rng.random((TIME, ENVS)) * (rng.random((TIME, ENVS)) < 0.6)).astype(np.float32)
    ended = rng.random((TIME, ENVS)) < 0.15
    ended[-1, 0] = True  # of this one, no path is cut
    return delta, intrinsic, ended


def test_the_authors_factor_path_by_path():
    delta, intrinsic, ended = sampled()
    before = np.array([5.0, 1.0, -2.0], np.float32)
    found, after = state_factors(before, jnp.asarray(delta), jnp.asarray(intrinsic), ended, RATE, SMOOTH)
    for env in range(ENVS):
        beta, path = float(before[env]), []
        for t in range(TIME):
            c = float(intrinsic[t, env])
            path.append(beta - RATE * (float(delta[t, env]) + beta * c) / c if c else beta)
            assert float(found[t, env]) == pytest.approx(path[-1], rel=1e-4)
            if ended[t, env] or t == TIME - 1:
                beta, path = 0.9 * beta + 0.1 * float(np.mean(path)), []
        assert float(after[env]) == pytest.approx(beta, rel=1e-4)


def test_it_falls_where_the_critic_underestimates_and_below_zero():
    """A target above V_C by 3: the proposition's factor would rise."""
    one = jnp.ones((1, 1))
    found, after = state_factors(np.zeros(1, np.float32), 3 * one, one, np.ones((1, 1), bool), 0.5, 0.1)
    assert float(found[0, 0]) == pytest.approx(-1.5)
    assert float(after[0]) == pytest.approx(-0.15)


def test_the_discount_of_iterations_stays_outside():
    """5 gamma^n c^I of theirs is beta_n c^I of ours: an unchanged factor is discounted once more per iteration."""
    config, balance = BalanceConfig(initial=5.0, discount=0.9), Balance.start(BalanceConfig(initial=5.0))
    for n in range(1, 4):
        balance = balance.follow(np.full(2, 1.0) * balance.beta(config), config)
        np.testing.assert_allclose(balance.beta(config), [5 * 0.9**n] * 2)


def test_units_of_the_intrinsic_return_where_it_comes_evenly():
    """0.2 per step in episodes of 1,000: 20 for ever at 0.99, 200 in an episode, 20 from the start state."""
    added, ended = jnp.full((2000, 1), 0.2), np.zeros((2000, 1), bool)
    ended[999::1000] = True
    units = {unit: float(intrinsic_return(added, added.mean(), ended, 1000.0, 0.99, unit)) for unit in UNITS}
    assert units == {unit: pytest.approx(value, rel=1e-3) for unit, value in UNITS.items()}
    # The factor that fits: T (1 - gamma) = 10 times the return, so a tenth of beta.
    assert units["episode"] / 10 == pytest.approx(units["discounted"], rel=1e-3)


UNITS = {"discounted": 20.0, "episode": 200.0, "start": 20.0}


def test_the_sum_from_the_start_of_each_path_by_hand():
    added = jnp.array([[1.0, 2.0], [2.0, 0.0], [4.0, 4.0]])
    ended = np.array([[False, False], [True, False], [False, False]])
    # first environment: 1 + 0.5 * 2 over two samples, then 4; second: 2 + 0.25 * 4 over three
    np.testing.assert_allclose(path_returns(added, ended, 0.5), [[2.0, 3.0], [2.0, 3.0], [4.0, 3.0]])
    assert float(intrinsic_return(added, added.mean(), ended, 9.0, 0.5, "start")) == pytest.approx((2 + 2 + 4 + 9) / 6)


def test_danger_late_in_an_episode_counts_little_from_its_start_and_fully_in_an_episode():
    added, ended = jnp.zeros((500, 1)).at[499].set(10.0), np.zeros((500, 1), bool)
    ended[499] = True
    found = [float(intrinsic_return(added, added.mean(), ended, 500.0, 0.99, unit)) for unit in ("episode", "start")]
    assert found == [pytest.approx(10.0), pytest.approx(10 * 0.99**499, rel=1e-3)]
