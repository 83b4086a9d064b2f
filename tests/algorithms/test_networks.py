"""The first weights of a network."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flashbulb.algorithms.critics import init_critics
from flashbulb.algorithms.networks import init_network
from flashbulb.config import CriticConfig

SIZES = [(60, 64, 64, 2), (3, 8, 1), (376, 64, 64, 17), (5, 1)]


def jax_network(key: jax.Array, sizes: tuple[int, ...], last_gain: float) -> list[jax.Array]:
    """The weights by JAX's own initialiser."""
    keys, weights = jax.random.split(key, len(sizes) - 1), []
    for i, shape in enumerate(itertools.pairwise(sizes)):
        gain = last_gain if i == len(sizes) - 2 else float(np.sqrt(2.0))
        weights.append(jax.nn.initializers.orthogonal(gain)(keys[i], shape, jnp.float32))
    return weights


@pytest.mark.parametrize("sizes", SIZES)
def test_weights_are_those_of_jax_to_the_last_bit(sizes: tuple[int, ...]) -> None:
    key = jax.random.key(7)
    network = init_network(key, sizes, last_gain=0.01)
    for layer, expected in zip(network, jax_network(key, sizes, 0.01), strict=True):
        assert layer.weight.dtype == np.float32
        np.testing.assert_array_equal(layer.weight, expected)
        np.testing.assert_array_equal(layer.bias, np.zeros(expected.shape[1]))
        small = min(expected.shape)
        gram = layer.weight.T @ layer.weight if expected.shape[1] == small else layer.weight @ layer.weight.T
        np.testing.assert_allclose(gram / gram[0, 0], np.eye(small), atol=1e-5)


def test_shapes_are_known_without_numbers() -> None:
    def make() -> tuple:
        return init_network(jax.random.key(0), (6, 5, 3)), init_critics(jax.random.key(0), 6, 2, CriticConfig())

    shapes, made = jax.eval_shape(make), make()
    assert jax.tree.structure(shapes) == jax.tree.structure(made)
    for shape, array in zip(jax.tree.leaves(shapes), jax.tree.leaves(made), strict=True):
        assert (shape.shape, shape.dtype) == (array.shape, array.dtype)


def test_each_critic_has_weights_of_its_own() -> None:
    networks = init_critics(jax.random.key(1), 6, 1, CriticConfig()).networks
    keys = jax.random.split(jax.random.key(1), 2)
    for c in range(2):
        for layer, expected in zip(networks, jax_network(keys[c], (6, 64, 64, 1), 1.0), strict=True):
            np.testing.assert_array_equal(layer.weight[c], expected)
