"""Least squares with a small tanh network: shuffled minibatches as one compiled loop over `small_network.py`.

Fits of several networks run side by side, one to a core (docs/performance.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flashbulb.algorithms.small_network import (
    Arrays,
    Parameters,
    adam_step,
    backpropagate,
    clip_norm,
    gather_rows,
    layer_arrays,
    layered,
    propagate,
    read_only,
)
from flashbulb.jit import jit_fastmath, jit_fastmath_inline


class Settings(NamedTuple):
    """Numbers of a descent, in single precision like all that they meet."""

    learning_rate: np.float32
    l2: np.float32
    max_grad_norm: np.float32


def regress(
    vector: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    count: int,
    sizes: tuple[int, ...],
    observations: np.ndarray,
    targets: np.ndarray,
    batches: np.ndarray,
    settings: Settings,
) -> float:
    """Fit the network of these `sizes` to `targets`, one step per row of `batches`; the steps' mean square error.

    `vector` (the parameters), and Adam's `mean` and `square` after `count` steps are changed in place.
    """
    gradient = layered(np.empty_like(vector), sizes)
    activations, backwards = (layer_arrays(sizes, batches.shape[1]) for _ in range(2))
    moments, data = (mean, square, count), (read_only(observations), read_only(targets), batches)
    return _regress(layered(vector, sizes), gradient, *moments, activations, backwards, *data, settings)


@jit_fastmath
def _regress(
    network: Parameters,
    gradient: Parameters,
    mean: np.ndarray,
    square: np.ndarray,
    count: int,
    activations: Arrays,
    backwards: Arrays,
    observations: np.ndarray,
    targets: np.ndarray,
    batches: np.ndarray,
    settings: Settings,
) -> float:
    total = 0.0
    for step in range(len(batches)):
        rows = batches[step]
        gather_rows(observations, rows, activations[0])
        propagate(network, activations)
        total += _errors(activations[-1], targets, rows, backwards[-1])
        backpropagate(network, gradient, activations, backwards)
        _add_penalty(network.vector, gradient.vector, settings.l2)
        clip_norm(gradient.vector, settings.max_grad_norm)
        adam_step(network.vector, gradient.vector, mean, square, count + step + 1, settings.learning_rate)
    return total / len(batches)


@jit_fastmath_inline
def _errors(values: np.ndarray, targets: np.ndarray, rows: np.ndarray, back: np.ndarray) -> float:
    """Mean square error; its derivative by the values goes to `back`."""
    total = np.float32(0)
    for i in range(len(rows)):
        error = values[i, 0] - targets[rows[i]]
        total += error * error
        back[i, 0] = np.float32(2) * error / np.float32(len(rows))
    return float(total) / len(rows)


@jit_fastmath_inline
def _add_penalty(vector: np.ndarray, gradient: np.ndarray, l2: np.float32) -> None:
    for i in range(len(vector)):
        gradient[i] += np.float32(2) * l2 * vector[i]
