"""Critics: one gradient step against a hand-written Adam, learning, and the maximum of several."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flashbulb.config import CriticConfig
from flashbulb.learn.critics import fit, init_critics, values
from flashbulb.learn.networks import forward, forward_numpy


def network(critics, index):
    return jax.tree.map(lambda x: x[index], critics.networks)


def test_host_and_device_networks_agree():
    critics = init_critics(jax.random.key(0), 6, 1, CriticConfig())
    x = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float32)
    host = forward_numpy(jax.tree.map(np.asarray, network(critics, 0)), x)
    np.testing.assert_allclose(host, forward(network(critics, 0), x), atol=1e-5)


def test_of_several_cost_critics_the_maximum_counts():
    critics = init_critics(jax.random.key(0), 3, 2, CriticConfig())
    x = jax.random.normal(jax.random.key(1), (50, 3))
    first, second = (forward(network(critics, i), x)[:, 0] for i in (1, 2))
    v_r, v_c = values(critics, x)
    np.testing.assert_allclose(v_r, forward(network(critics, 0), x)[:, 0], atol=1e-6)
    np.testing.assert_allclose(v_c, np.maximum(first, second), atol=1e-6)
    assert (first > second).any()
    assert (second > first).any()


@pytest.mark.parametrize("max_grad_norm", [1e6, 0.05])
def test_one_step_is_adam_on_the_penalised_square_error(max_grad_norm):
    config = CriticConfig(hidden=(4,), passes=1, minibatch=32, l2=0.01, max_grad_norm=max_grad_norm)
    critics = init_critics(jax.random.key(0), 3, 1, config)
    x = jax.random.normal(jax.random.key(1), (32, 3))
    targets = jax.random.normal(jax.random.key(2), (2, 32))
    after, _ = fit(critics, x, targets, jax.random.key(3), 1e-3, config)
    for index in range(2):
        flat, unflatten = jax.flatten_util.ravel_pytree(network(critics, index))

        def loss(vector, index=index, unflatten=unflatten):
            return float(
                jnp.mean((forward(unflatten(vector), x)[:, 0] - targets[index]) ** 2) + 0.01 * (vector**2).sum()
            )

        with jax.enable_x64(True):
            base = np.asarray(flat, np.float64)
            h = 1e-4
            gradient = np.array([(loss(base + h * e) - loss(base - h * e)) / (2 * h) for e in np.eye(len(base))])
        gradient *= min(1.0, max_grad_norm / np.linalg.norm(gradient))
        # Adam's first step from zero moments
        expected = base - 1e-3 * gradient / (np.abs(gradient) + 1e-8)
        moved, _ = jax.flatten_util.ravel_pytree(network(after, index))
        sure = np.abs(gradient) > 1e-4  # where finite differences know the sign
        np.testing.assert_allclose(np.asarray(moved)[sure], expected[sure], atol=2e-5)


def test_critics_learn_their_own_targets():
    config = CriticConfig(hidden=(32, 32), passes=100, minibatch=50, l2=0.0)
    critics = init_critics(jax.random.key(0), 2, 1, config)
    x = jax.random.uniform(jax.random.key(1), (500, 2), minval=-1, maxval=1)
    targets = jnp.stack([x[:, 0] * x[:, 1], jnp.sin(3 * x[:, 0])])
    trained, _ = jax.jit(lambda c: fit(c, x, targets, jax.random.key(2), 3e-3, config))(critics)
    v_r, v_c = values(trained, x)
    assert float(jnp.mean((v_r - targets[0]) ** 2)) < 0.02 * float(targets[0].var())
    assert float(jnp.mean((v_c - targets[1]) ** 2)) < 0.02 * float(targets[1].var())


def test_a_batch_smaller_than_a_minibatch_still_trains():
    config = CriticConfig(hidden=(4,), passes=2, minibatch=64)
    critics = init_critics(jax.random.key(0), 2, 1, config)
    after, losses = fit(critics, jnp.ones((10, 2)), jnp.ones((2, 10)), jax.random.key(0), 1e-3, config)
    assert np.isfinite(losses).all()
    assert not np.allclose(after.networks[0].weight, critics.networks[0].weight)
