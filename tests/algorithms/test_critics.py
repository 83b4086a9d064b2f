"""Critics: their compiled descent against optax and a hand-written Adam, learning, the maximum of several."""

import os
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numba
import numpy as np
import optax
import pytest

from flashbulb.algorithms.critic_fit import _regress
from flashbulb.algorithms.critics import fit, init_critics, values
from flashbulb.algorithms.networks import forward, forward_numpy
from flashbulb.algorithms.small_network import blas, fast_tanh
from flashbulb.config import CriticConfig


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
    after, _ = fit(critics, np.asarray(x), np.asarray(targets), np.random.default_rng(3), 1e-3, config)
    for index in range(2):
        flat, unflatten = jax.flatten_util.ravel_pytree(network(critics, index))

        def loss(vector, index=index, unflatten=unflatten):
            return jnp.mean((forward(unflatten(vector), x)[:, 0] - targets[index]) ** 2) + 0.01 * (vector**2).sum()

        with jax.enable_x64(True):
            base, h, compiled = np.asarray(flat, np.float64), 1e-4, jax.jit(loss)
            ends = [(float(compiled(base + h * e)), float(compiled(base - h * e))) for e in np.eye(len(base))]
            gradient = np.array([(above - below) / (2 * h) for above, below in ends])
        gradient *= min(1.0, max_grad_norm / np.linalg.norm(gradient))
        # Adam's first step from zero moments
        expected = base - 1e-3 * gradient / (np.abs(gradient) + 1e-8)
        moved, _ = jax.flatten_util.ravel_pytree(network(after, index))
        sure = np.abs(gradient) > 1e-4  # where finite differences know the sign
        np.testing.assert_allclose(np.asarray(moved)[sure], expected[sure], atol=2e-5)


def test_compiled_sums_are_part_of_their_callers():
    """A copy that the actor's descent has as well would be linked from whichever of the two is loaded first."""
    config = CriticConfig(hidden=(4,), passes=1, minibatch=4)
    critics, x = init_critics(jax.random.key(0), 3, 1, config), np.ones((8, 3), np.float32)
    fit(critics, x, np.ones((2, 8), np.float32), np.random.default_rng(0), 1e-3, config)
    compiled = numba.jit(**_regress.targetoptions)(_regress.py_func)  # anew, as a function from the cache has no text
    compiled.compile(_regress.nopython_signatures[0].args)
    (text,) = compiled.inspect_llvm().values()
    defined = [line for line in text.splitlines() if line.startswith("define ")]
    assert any("_regress" in line for line in defined)
    assert not [line for line in defined if "small_network" in line]


@pytest.mark.parametrize("hidden", [(8,), (16, 12)])
def test_the_compiled_descent_is_that_of_optax(hidden):
    config = CriticConfig(hidden=hidden, passes=3, minibatch=20, l2=0.01, max_grad_norm=0.5)
    critics = init_critics(jax.random.key(0), 5, 2, config)
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((110, 5), np.float32), rng.standard_normal((3, 110), np.float32)
    once, _ = fit(critics, x, targets, np.random.default_rng(1), 1e-2, config)  # so that moments are not zero
    twice, losses = fit(once, x, targets, np.random.default_rng(2), 1e-3, config)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
    inputs, wanted = jnp.asarray(x), jnp.asarray(targets)

    @jax.jit
    def descend(params, state, rows, index):
        def loss(params):
            error = jnp.mean((forward(params, inputs[rows])[:, 0] - wanted[index, rows]) ** 2)
            return error + 0.01 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)), error

        gradient, error = jax.grad(loss, has_aux=True)(params)
        step, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, step), state, error

    for index in range(3):
        params = network(once, index)
        clip, (adam, scale) = optimiser.init(params)
        moments = once.optimiser
        mean, square = (jax.tree.map(lambda a, i=index: a[i], tree) for tree in (moments.mu, moments.nu))
        state = clip, (adam._replace(count=moments.count[index], mu=mean, nu=square), scale)

        errors, shuffle = [], np.random.default_rng(2)
        for _ in range(3):
            for rows in shuffle.permutation(110)[:100].reshape(5, 20):
                params, state, error = descend(params, state, rows, index)
                errors.append(error)
        np.testing.assert_allclose(losses[index], np.mean(errors), rtol=1e-4)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), network(twice, index), params)
        assert int(twice.optimiser.count[index]) == 30


def test_the_optax_backend_is_the_compiled_one_up_to_rounding():
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((110, 5), np.float32), rng.standard_normal((3, 110), np.float32)
    fits = {}
    for backend in ("compiled", "optax"):
        config = CriticConfig(hidden=(16, 12), passes=3, minibatch=20, l2=0.01, max_grad_norm=0.5, backend=backend)
        critics = init_critics(jax.random.key(0), 5, 2, config)
        once, _ = fit(critics, x, targets, np.random.default_rng(1), 1e-2, config)
        fits[backend] = fit(once, x, targets, np.random.default_rng(2), 1e-3, config)
    (ours, our_losses), (theirs, their_losses) = fits["compiled"], fits["optax"]
    np.testing.assert_allclose(our_losses, their_losses, rtol=1e-4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=5e-5), ours, theirs)
    assert int(theirs.optimiser.count[0]) == 30


def test_fits_side_by_side_are_the_same_fits():
    config = CriticConfig(hidden=(16, 12), passes=5, minibatch=20)
    critics = init_critics(jax.random.key(0), 5, 2, config)
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((400, 5), np.float32), rng.standard_normal((3, 400), np.float32)
    alone, _ = fit(critics, x, targets, np.random.default_rng(1), 1e-3, config)
    with ThreadPoolExecutor(3) as pool:
        together, _ = fit(critics, x, targets, np.random.default_rng(1), 1e-3, config, pool.map)
    jax.tree.map(np.testing.assert_array_equal, alone, together)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores to compare with one")
def test_threads_of_the_matrix_library_change_nothing():
    config = CriticConfig(hidden=(300, 100), passes=1, minibatch=500)
    critics = init_critics(jax.random.key(0), 40, 1, config)
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((2_000, 40), np.float32), rng.standard_normal((2, 2_000), np.float32)
    found = []
    for threads in (1, 2):
        with blas().limit(limits=threads):
            found.append(fit(critics, x, targets, np.random.default_rng(1), 1e-3, config)[0])
    jax.tree.map(np.testing.assert_array_equal, *found)


def test_the_compiled_tanh_is_tanh():
    x = np.concatenate([np.linspace(-12, 12, 10_001), [1e-8, -1e-20, 1e30, np.nan]]).astype(np.float32)
    fast = x.copy()
    fast_tanh(fast)
    np.testing.assert_allclose(fast, np.tanh(x.astype(np.float64)), atol=5e-7)


def test_what_is_not_a_number_is_not_hidden():
    config = CriticConfig(hidden=(8,), passes=1, minibatch=20)
    critics = init_critics(jax.random.key(0), 5, 1, config)
    x, targets = np.zeros((20, 5), np.float32), np.full((2, 20), np.nan, np.float32)
    after, losses = fit(critics, x, targets, np.random.default_rng(1), 1e-3, config)
    assert np.isnan(losses).all()
    assert np.isnan(after.networks[-1].bias).all()


def test_weights_of_a_silent_input_end_at_zero_and_not_in_subnormal_numbers():
    config = CriticConfig(hidden=(8, 8), passes=1000, minibatch=20, l2=1e-3)
    critics = init_critics(jax.random.key(0), 3, 1, config)
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((100, 3), np.float32), rng.standard_normal((2, 100), np.float32)
    x[:, 1] = 0  # as the turn of a robot that cannot roll
    after, _ = fit(critics, x, targets, np.random.default_rng(1), 1e-2, config)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves((after.networks, after.optimiser.mu, after.optimiser.nu))]
    assert not any(((leaf != 0) & (np.abs(leaf) < np.finfo(np.float32).tiny)).any() for leaf in leaves)
    weights = np.asarray(after.networks[0].weight)
    assert not weights[:, 1].any()
    assert np.abs(weights[:, [0, 2]]).min() > 0


def test_critics_learn_their_own_targets():
    config = CriticConfig(hidden=(32, 32), passes=100, minibatch=50, l2=0.0)
    critics = init_critics(jax.random.key(0), 2, 1, config)
    x = jax.random.uniform(jax.random.key(1), (500, 2), minval=-1, maxval=1)
    targets = jnp.stack([x[:, 0] * x[:, 1], jnp.sin(3 * x[:, 0])])
    trained, _ = fit(critics, np.asarray(x), np.asarray(targets), np.random.default_rng(2), 3e-3, config)
    v_r, v_c = values(trained, x)
    assert float(jnp.mean((v_r - targets[0]) ** 2)) < 0.02 * float(targets[0].var())
    assert float(jnp.mean((v_c - targets[1]) ** 2)) < 0.02 * float(targets[1].var())


def test_a_batch_smaller_than_a_minibatch_still_trains():
    config = CriticConfig(hidden=(4,), passes=2, minibatch=64)
    critics = init_critics(jax.random.key(0), 2, 1, config)
    ones = np.ones((10, 2), np.float32)
    after, losses = fit(critics, ones, np.ones((2, 10), np.float32), np.random.default_rng(0), 1e-3, config)
    assert np.isfinite(losses).all()
    assert not np.allclose(after.networks[0].weight, critics.networks[0].weight)
