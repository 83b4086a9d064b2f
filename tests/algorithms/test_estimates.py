"""What the balancing factor is corrected by, and what an intrinsic cost does to targets, by the learner's own code."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashbulb.algorithms.advantages import estimate_advantages
from flashbulb.algorithms.critics import init_critics, values
from flashbulb.batch import Batch
from flashbulb.config import BalanceConfig, Config, CriticConfig
from flashbulb.normaliser import Normaliser

CRITICS = init_critics(jax.random.key(0), 3, 1, CriticConfig(hidden=(4,)))
IDENTITY = Normaliser.empty(3).frozen()
STEPS, ENVS, GAMMA = 15, 3, 0.9


def sample(seed, intrinsic=0.0):
    rng = np.random.default_rng(seed)
    observations = rng.standard_normal((STEPS + 1, ENVS, 3)).astype(np.float32)
    terminated = rng.random((STEPS, ENVS)) < 0.1
    ended = terminated | (rng.random((STEPS, ENVS)) < 0.1)
    rewards, costs = rng.random((2, STEPS, ENVS)).astype(np.float32)
    bonus = (intrinsic * rng.random((STEPS, ENVS))).astype(np.float32)
    samples = observations[:-1], observations[1:], np.zeros(()), rewards, costs, terminated, ended
    return Batch(0, *samples, IDENTITY, intrinsic=bonus)


@functools.partial(jax.jit, static_argnames="bias")
def seen(batch, beta, bias="return"):
    config = Config("mice-cpo", "E", cost_gamma=GAMMA, balance=BalanceConfig(bias=bias))
    return estimate_advantages(CRITICS, batch._replace(beta=beta), batch.rewards, config)


def v_c(observations):
    return np.asarray(values(CRITICS, observations)[1])


def test_the_bias_td_is_the_td_error_of_the_extrinsic_cost():
    batch = sample(1, intrinsic=1.0)
    found = seen(batch, beta=3.0, bias="td")
    v, following = v_c(batch.observations), v_c(batch.next_observations)
    for t in range(STEPS):
        for m in range(ENVS):
            target = batch.costs[t, m] + (0.0 if batch.terminated[t, m] else GAMMA * following[t, m])
            assert float(found.balance_bias[t, m]) == pytest.approx(v[t, m] - target, abs=1e-5)


def test_the_papers_bias_is_that_against_the_sampled_return_and_metrics_always_show_it():
    batch = sample(2, intrinsic=1.0)
    ours, theirs = seen(batch, beta=3.0), seen(batch, beta=3.0, bias="td")
    np.testing.assert_array_equal(ours.balance_bias, ours.sampled_bias)
    np.testing.assert_array_equal(ours.sampled_bias, theirs.sampled_bias)
    ends = np.flatnonzero(batch.ended[:, 0])[0]
    total = sum(GAMMA**t * float(batch.costs[t, 0]) for t in range(ends + 1))
    if not batch.terminated[ends, 0]:
        total += GAMMA ** (ends + 1) * float(v_c(batch.next_observations[ends, 0]))
    assert float(ours.sampled_bias[0, 0]) == pytest.approx(float(v_c(batch.observations[0, 0])) - total, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), beta=st.floats(0, 20))
def test_extrinsic_intrinsic_targets_are_never_below_extrinsic_ones(seed, beta):
    """Q^EI >= Q for the same data and the same start."""
    with_it, without = sample(seed, intrinsic=1.0), sample(seed)
    ei, e = seen(with_it, beta), seen(without, beta)
    assert (np.asarray(ei.a_c + ei.v_c) >= np.asarray(e.a_c + e.v_c) - 1e-5).all()
    np.testing.assert_array_equal(ei.v_c, e.v_c)
    np.testing.assert_array_equal(ei.a_r, e.a_r)


def test_what_the_critic_learns_contains_beta_times_the_intrinsic_cost():
    """Along each episode, the targets with and without c^I differ by beta c^I, discounted by gamma and lambda."""
    batch, beta = sample(3, intrinsic=1.0), 3.0
    found = seen(batch, beta).a_c - seen(batch._replace(intrinsic=np.zeros_like(batch.intrinsic)), beta).a_c
    decay = GAMMA * Config("mice-cpo", "E").cost_lam
    for env in range(ENVS):
        following = 0.0
        for t in reversed(range(STEPS)):
            following = beta * batch.intrinsic[t, env] + decay * following * (not batch.ended[t, env])
            assert float(found[t, env]) == pytest.approx(following, rel=1e-4)
            assert following > 0


def test_after_an_early_end_the_cost_may_go_on_as_in_the_mean():
    """Backwards by hand: behind a termination stands the mean of V_C, where nothing stood. Rewards end as before."""
    batch = sample(6, intrinsic=1.0)._replace(beta=2.0)
    assert batch.terminated.any()
    config = Config("mice-cpo", "E", cost_gamma=GAMMA)
    going_on = dataclasses.replace(config, cost_after_end="mean")
    plain, found = (estimate_advantages(CRITICS, batch, batch.rewards, c) for c in (config, going_on))
    v, following = v_c(batch.observations), v_c(batch.next_observations)
    signal, decay = batch.costs + 2.0 * batch.intrinsic, GAMMA * config.cost_lam
    for env in range(ENVS):
        advantage, sampled = 0.0, float(following[-1, env])
        for t in reversed(range(STEPS)):
            behind = v.mean() if batch.terminated[t, env] else following[t, env]
            advantage = signal[t, env] + GAMMA * behind - v[t, env] + decay * advantage * (not batch.ended[t, env])
            sampled = batch.costs[t, env] + GAMMA * (behind if batch.ended[t, env] else sampled)
            assert float(found.a_c[t, env]) == pytest.approx(advantage, rel=1e-4, abs=1e-5)
            assert float(found.sampled_bias[t, env]) == pytest.approx(v[t, env] - sampled, rel=1e-4, abs=1e-5)
    np.testing.assert_array_equal(found.a_r, plain.a_r)


def test_where_nothing_ends_early_the_cost_after_an_end_changes_nothing():
    batch = sample(7)
    batch = batch._replace(terminated=np.zeros_like(batch.terminated), beta=0.0)
    config = Config("cpo", "E", cost_gamma=GAMMA)
    plain = estimate_advantages(CRITICS, batch, batch.rewards, config)
    found = estimate_advantages(CRITICS, batch, batch.rewards, dataclasses.replace(config, cost_after_end="mean"))
    np.testing.assert_array_equal(found.a_c, plain.a_c)


def test_a_constant_in_the_value_changes_no_advantage_once_the_critic_has_learned_it():
    """Constant-N-CPO (`constant.of value`) is CPO with a limit that is lower by N, where episodes do not terminate."""
    batch = sample(5)
    batch, constant = batch._replace(terminated=np.zeros_like(batch.terminated), beta=1.0), 3.0
    config = Config("cpo", "E", cost_gamma=GAMMA)
    *hidden, last = CRITICS.networks
    learned = CRITICS._replace(networks=[*hidden, last._replace(bias=last.bias.at[1].add(constant))])
    per_step = np.full_like(batch.intrinsic, constant * (1 - GAMMA))
    plain = estimate_advantages(CRITICS, batch, batch.rewards, config)
    found = estimate_advantages(learned, batch._replace(intrinsic=per_step), batch.rewards, config)
    np.testing.assert_allclose(found.v_c, plain.v_c + constant, rtol=1e-5)
    np.testing.assert_allclose(found.a_c, plain.a_c, atol=1e-5)
    assert per_step.mean() / (1 - GAMMA) == pytest.approx(constant)  # I, which is taken off the limit
