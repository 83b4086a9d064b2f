"""Small tanh networks as plain lists of layers, evaluated by JAX when learning and by NumPy when acting."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Layer(NamedTuple):
    weight: Any  # (inputs, outputs)
    bias: Any  # (outputs,)


Network = list[Layer]


def init_network(key: jax.Array, sizes: tuple[int, ...], last_gain: float = 1.0) -> Network:
    """Orthogonal weights of gain sqrt(2) inside and `last_gain` at the end, zero biases.

    The numbers are those of JAX's initialiser, whose program for one layer takes longer to compile than the task does.
    """
    shapes = list(itertools.pairwise(sizes))
    gains = [float(np.sqrt(2.0))] * (len(shapes) - 1) + [last_gain]
    if isinstance(key, jax.core.Tracer):  # only the shapes are asked for
        keys = jax.random.split(key, len(shapes))
        weights = [jax.nn.initializers.orthogonal(gain)(keys[i], shapes[i]) for i, gain in enumerate(gains)]
        return [Layer(weight, jnp.zeros(weight.shape[1], jnp.float32)) for weight in weights]
    drawn = np.asarray(_normals(key, len(shapes), max(inputs * outputs for inputs, outputs in shapes)))
    matrices = [orthogonal(row, shape, gain) for row, shape, gain in zip(drawn, shapes, gains, strict=True)]
    return [Layer(jnp.asarray(matrix), jnp.asarray(np.zeros(matrix.shape[1], np.float32))) for matrix in matrices]


@partial(jax.jit, static_argnames=("rows", "count"))
def _normals(key: jax.Array, rows: int, count: int) -> jax.Array:
    """(rows, count), each row by a key of its own; it begins with what that key gives for a smaller count."""
    return jax.vmap(lambda key: jax.random.normal(key, (count,), jnp.float32))(jax.random.split(key, rows))


def orthogonal(normals: np.ndarray, shape: tuple[int, int], gain: float) -> np.ndarray:
    """A matrix with orthogonal rows or columns, uniform among them: Q of the first normal numbers, with R's diagonal
    positive."""
    from scipy.linalg import qr  # its LAPACK is the one that JAX calls

    q, r = qr(normals[: shape[0] * shape[1]].reshape(max(shape), min(shape)), mode="economic")
    q = q * np.sign(np.diag(r))
    return np.float32(gain) * (q.T if shape[0] < shape[1] else q)


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
