"""Small tanh networks as plain lists of layers, evaluated by JAX when learning and by NumPy when acting."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Layer(NamedTuple):
    weight: Any  # (inputs, outputs)
    bias: Any  # (outputs,)


Network = list[Layer]


def init_network(key: jax.Array, sizes: tuple[int, ...], last_gain: float = 1.0) -> Network:
    """Orthogonal weights of gain sqrt(2) inside and `last_gain` at the end, zero biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    layers = []
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        gain = last_gain if i == len(sizes) - 2 else float(np.sqrt(2.0))
        weight = jax.nn.initializers.orthogonal(gain)(keys[i], (inputs, outputs), jnp.float32)
        layers.append(Layer(weight, jnp.zeros(outputs, jnp.float32)))
    return layers


def forward(network: Network, x: jax.Array) -> jax.Array:
    for layer in network[:-1]:
        x = jnp.tanh(x @ layer.weight + layer.bias)
    return x @ network[-1].weight + network[-1].bias


def forward_numpy(network: Network, x: np.ndarray) -> np.ndarray:
    """The same on the host. For a row per environment this beats the dispatch of a compiled call."""
    for layer in network[:-1]:
        x = x @ layer.weight
        x += layer.bias
        np.tanh(x, out=x)
    out: np.ndarray = x @ network[-1].weight + network[-1].bias
    return out
