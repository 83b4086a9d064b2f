"""PPO's objective and the minibatch descent against NumPy."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from flashbulb.algorithms.actor import Actor, lagrangian_advantage
from flashbulb.algorithms.proximal import actor_optimiser, clipped_loss, proximal_step
from flashbulb.config import ProximalConfig
from tests.algorithms.actor_batches import POLICY, divergence, example, inputs, log_density, moved, numerical_gradient

KEY = jax.random.key(3)
CONFIG = ProximalConfig(learning_rate=0.01, passes=2, minibatch=16, clip=0.2, kl=1e9, max_grad_norm=0.05)


def clipped_loss_by_loop(params, batch, advantage, clip):
    total = 0.0
    ratios = np.exp(log_density(params, batch.observations, batch.actions) - batch.log_prob)
    for ratio, a in zip(ratios, np.asarray(advantage, np.float64), strict=True):
        gain = ratio * a
        if a > 0 and ratio > 1 + clip:
            gain = (1 + clip) * a
        if a < 0 and ratio < 1 - clip:
            gain = (1 - clip) * a
        total += gain
    return -total / len(ratios)


def test_clipped_loss():
    params, batch = example()
    far = moved(params, by=0.3)
    loss = clipped_loss(POLICY, far, batch, batch.reward_advantage, CONFIG)
    expected = clipped_loss_by_loop(far, batch, batch.reward_advantage, 0.2)
    unclipped = clipped_loss_by_loop(far, batch, batch.reward_advantage, 1e9)
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    assert abs(unclipped - expected) > 0.01  # the clip had something to do


def test_the_price_of_cost_scales_nothing():
    a_r, a_c = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    np.testing.assert_allclose(lagrangian_advantage(a_r, a_c, 0.0), a_r)
    np.testing.assert_allclose(lagrangian_advantage(a_r, a_c, 3.0), [(1 - 9) / 4, (-2 - 1.5) / 4])
    np.testing.assert_allclose(lagrangian_advantage(a_r, a_c, 1e6), -a_c, rtol=1e-4)


def descend_by_hand(params, batch, lam, rate, key, config):
    """Shuffled minibatches, clipped gradients and Adam in NumPy, gradients by finite differences."""
    advantage = (batch.reward_advantage - lam * batch.cost_advantage) / (1 + lam)
    leaves, structure = jax.tree.flatten(jax.tree.map(lambda p: np.asarray(p, np.float64), params))
    m, v, count = [np.zeros_like(p) for p in leaves], [np.zeros_like(p) for p in leaves], 0
    states = len(advantage)
    for n in range(config.passes):
        order = np.asarray(jax.random.permutation(jax.random.fold_in(key, n), states))
        assert sorted(order) == list(range(states))
        for start in range(0, states - config.minibatch + 1, config.minibatch):
            rows = order[start : start + config.minibatch]
            part = type(batch)(*(x[rows] for x in batch))
            grads = numerical_gradient(
                lambda p, part=part, rows=rows: clipped_loss_by_loop(p, part, advantage[rows], config.clip),
                jax.tree.unflatten(structure, leaves),
            )
            grads = jax.tree.leaves(grads)
            norm = np.sqrt(sum((g**2).sum() for g in grads))
            grads = [g * min(1.0, config.max_grad_norm / norm) for g in grads]
            count += 1
            for i, g in enumerate(grads):
                m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g**2
                leaves[i] = leaves[i] - rate * (m[i] / (1 - 0.9**count)) / (np.sqrt(v[i] / (1 - 0.999**count)) + 1e-8)
    return jax.tree.unflatten(structure, leaves)


@functools.cache
def compiled(config):
    def step(actor, batch, lam, rate):
        return proximal_step(POLICY, actor, inputs(batch, key=KEY)._replace(learning_rate=rate), lam, config)

    return jax.jit(step)


def run(params, batch, lam, rate, config):
    actor = Actor(params, actor_optimiser(config).init(params))
    return compiled(config)(actor, batch, np.float32(lam), np.float32(rate))


def test_the_whole_step_against_numpy():
    params, batch = example()
    lam, rate = 0.7, 0.004
    ours = run(params, batch, lam, rate, CONFIG).actor.params
    theirs = descend_by_hand(params, batch, lam, rate, KEY, CONFIG)
    for a, b, start in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)
        assert np.abs(a - start).max() > 1e-3


def test_early_stop_by_kl():
    params, batch = example()
    every = [run(params, batch, 0.0, 0.01, dataclasses.replace(CONFIG, passes=n)) for n in (1, 2)]
    kls = [divergence(jax.tree.map(np.asarray, d.actor.params), params, batch.observations).mean() for d in every]
    np.testing.assert_allclose([float(d.kl) for d in every], kls, rtol=1e-3)
    assert kls[0] < kls[1]
    stopped = run(params, batch, 0.0, 0.01, dataclasses.replace(CONFIG, passes=40, kl=(kls[0] + kls[1]) / 2))
    assert int(stopped.passes) == 2
    for a, b in zip(jax.tree.leaves(stopped.actor), jax.tree.leaves(every[1].actor), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_decayed_step_size_changes_nothing():
    params, batch = example()
    descent = run(params, batch, 0.0, 0.0, CONFIG)
    for a, b in zip(jax.tree.leaves(descent.actor.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(a, b)
