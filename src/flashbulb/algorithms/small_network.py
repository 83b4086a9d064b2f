"""Small tanh networks in compiled code: forward and backward around BLAS, clipping of the gradient, Adam.

A step works on 64 states and five thousand parameters: so little for each operation that XLA takes several times as
long as these loops (docs/performance.md). The critics' fit (`critic_fit.py`) and the actor's (`actor_fit.py`) are made
of them; both are what optax's Adam makes of a JAX network, up to rounding, to which tests hold them.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from flashbulb.jit import jit_fastmath_inline, jit_inline

Arrays = tuple[np.ndarray, ...]  # one per layer
MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8  # Adam's
# What is nearer to zero is zero: a weight's penalty has a square of 1e-33, still a normal number.
_NO_WEIGHT, _NO_MEAN, _NO_SQUARE = np.float32(1e-12), np.float32(1e-30), np.float32(1e-36)
_SATURATED = np.float32(8.0)  # where tanh is 1 within two roundings of single precision


class Parameters(NamedTuple):
    """A network's parameters, or their gradient: one vector, and views of it as layers."""

    vector: np.ndarray
    weights: Arrays  # (inputs, outputs)
    biases: Arrays


def layered(vector: np.ndarray, sizes: tuple[int, ...]) -> Parameters:
    """Layer by layer, each as weights and then biases; what the vector has after them belongs to no layer."""
    weights, biases, at = [], [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        middle, end = at + inputs * outputs, at + (inputs + 1) * outputs
        weights.append(vector[at:middle].reshape(inputs, outputs))
        biases.append(vector[middle:end])
        at = end
    return Parameters(vector, tuple(weights), tuple(biases))


def layer_arrays(sizes: tuple[int, ...], states: int) -> Arrays:
    """Room for what the layers make of so many states, inputs included."""
    return tuple(np.empty((states, size), np.float32) for size in sizes)


def read_only(array: np.ndarray) -> np.ndarray:
    """The array in single precision, not to be written to. A view of a JAX array is like that, and compiled functions
    are compiled once more for arrays that are not."""
    view = np.ascontiguousarray(array, np.float32).view()
    view.flags.writeable = False
    return view


@cache
def blas() -> ThreadpoolController:
    """The library that multiplies matrices for compiled code, once it is loaded."""
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


@jit_fastmath_inline
def gather_rows(table: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(rows)):
        row = rows[i]  # read once, as `rows` might overlap `out` for all that the compiler knows: five times as fast
        for k in range(out.shape[1]):
            out[i, k] = table[row, k]


@jit_fastmath_inline
def propagate(network: Parameters, activations: Arrays) -> None:
    """Fill the activations above the first, the inputs; the last layer is linear."""
    last = len(network.weights) - 1
    for layer in range(last + 1):
        out = activations[layer + 1]
        np.dot(activations[layer], network.weights[layer], out)
        _add(out, network.biases[layer])
        if layer < last:
            fast_tanh(out.reshape(-1))


@jit_fastmath_inline
def _add(out: np.ndarray, bias: np.ndarray) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += bias[j]


@jit_fastmath_inline
def backpropagate(network: Parameters, gradient: Parameters, activations: Arrays, backwards: Arrays) -> None:
    """From the derivative by the outputs, the last of `backwards`, to that by the parameters."""
    for layer in range(len(network.weights) - 1, -1, -1):
        back, below = backwards[layer + 1], activations[layer]
        np.dot(below.T, back, gradient.weights[layer])
        _sum_rows(back, gradient.biases[layer])
        if layer > 0:
            np.dot(back, network.weights[layer].T, backwards[layer])
            _through_tanh(backwards[layer].reshape(-1), below.reshape(-1))


@jit_fastmath_inline
def _sum_rows(back: np.ndarray, out: np.ndarray) -> None:
    for j in range(len(out)):
        out[j] = np.float32(0)
    for i in range(back.shape[0]):
        for j in range(back.shape[1]):
            out[j] += back[i, j]


@jit_fastmath_inline
def _through_tanh(back: np.ndarray, activation: np.ndarray) -> None:
    for i in range(len(back)):
        back[i] *= np.float32(1) - activation[i] * activation[i]


@jit_fastmath_inline
def clip_norm(gradient: np.ndarray, max_grad_norm: np.float32) -> None:
    """Shorten what is too long."""
    squares = np.float32(0)
    for i in range(len(gradient)):
        squares += gradient[i] * gradient[i]
    norm = np.sqrt(squares)
    if norm > max_grad_norm:
        factor = max_grad_norm / norm
        for i in range(len(gradient)):
            gradient[i] *= factor


@jit_inline
def _ended(x: np.float32, least: np.float32) -> np.float32:
    return np.float32(0) if abs(x) < least else x  # what is not a number stays that way


@jit_fastmath_inline
def adam_step(
    vector: np.ndarray, gradient: np.ndarray, mean: np.ndarray, square: np.ndarray, count: int, rate: np.float32
) -> None:
    """Kingma and Ba's step, moments corrected for their start at zero.

    Weights of an input that is always zero only shrink, with their moments. Below the smallest normal number each
    operation on them would take a hundred times as long, so they end at zero before that.
    """
    b1, b2, epsilon = np.float32(MEAN_DECAY), np.float32(SQUARE_DECAY), np.float32(EPSILON)
    one = np.float32(1)
    step = rate * np.float32(1 / (1 - MEAN_DECAY**count))
    unbias = np.float32(1 / (1 - SQUARE_DECAY**count))
    for i in range(len(vector)):
        g = gradient[i]
        m = _ended(b1 * mean[i] + (one - b1) * g, _NO_MEAN)
        s = _ended(b2 * square[i] + (one - b2) * g * g, _NO_SQUARE)
        mean[i], square[i] = m, s
        vector[i] = _ended(vector[i] - step * m / (np.sqrt(s * unbias) + epsilon), _NO_WEIGHT)


def _lambert(depth: int) -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """tanh x = x / (1 + x^2 / (3 + x^2 / (5 + ...))), cut at `depth`: x P(x^2) / Q(x^2), highest powers first."""
    p, q = [1], [2 * depth - 1]  # the fraction so far is q / p, coefficients lowest first
    for odd in range(2 * depth - 3, 0, -2):
        shifted = [0, *p]
        size = max(len(q), len(shifted))
        padded = q + [0] * (size - len(q)), shifted + [0] * (size - len(shifted))
        p, q = q, [odd * a + b for a, b in zip(*padded, strict=True)]
    scale = q[0]
    return tuple(np.float32(c / scale) for c in p[::-1]), tuple(np.float32(c / scale) for c in q[::-1])


_P, _Q = _lambert(12)


@jit_fastmath_inline
def fast_tanh(x: np.ndarray) -> None:
    """In place, by a fraction that a loop can vectorise: exact to a few roundings of single precision."""
    for i in range(len(x)):
        z = min(max(x[i], -_SATURATED), _SATURATED)
        s = z * z
        p, q = _P[0], _Q[0]
        for c in _P[1:]:
            p = p * s + c
        for c in _Q[1:]:
            q = q * s + c
        x[i] = z * p / q
