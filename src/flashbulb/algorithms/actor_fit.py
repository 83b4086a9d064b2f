"""The actor's minibatch descent as a compiled loop over `small_network.py`, one call per pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flashbulb.algorithms.distribution_slopes import Sampled, compare, slope_of_outputs
from flashbulb.algorithms.proximal_loss import ProximalLoss, slope_of_loss
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
)
from flashbulb.jit import jit_fastmath, jit_fastmath_helper


class PolicyVector(NamedTuple):
    """A policy's parameters, or their gradient: a network, and after its layers the logarithms of the deviations."""

    network: Parameters
    log_std: np.ndarray  # empty for a categorical


class Work(NamedTuple):
    """Room for a minibatch."""

    activations: Arrays
    backwards: Arrays
    log_ratio: np.ndarray
    kl: np.ndarray
    by_log_ratio: np.ndarray
    by_kl: np.ndarray


class Moments(NamedTuple):
    """Adam's, after so many steps."""

    mean: np.ndarray
    square: np.ndarray
    steps: int


def policy_vector(vector: np.ndarray, sizes: tuple[int, ...]) -> PolicyVector:
    """Views of a vector as the policy with a network of these `sizes`."""
    network = layered(vector, sizes)
    return PolicyVector(network, vector[sum(layer.size for layer in (*network.weights, *network.biases)) :])


def work_for(sizes: tuple[int, ...], states: int) -> Work:
    per_state = (np.empty(states, np.float32) for _ in range(4))
    return Work(layer_arrays(sizes, states), layer_arrays(sizes, states), *per_state)


@jit_fastmath
def descend_once(
    policy: PolicyVector,
    gradient: PolicyVector,
    moments: Moments,
    work: Work,
    sampled: Sampled,
    loss: ProximalLoss,
    batches: np.ndarray,
    learning_rate: np.float32,
    max_grad_norm: np.float32,
) -> None:
    """One step of Adam per row of `batches`; parameters and moments are changed in place."""
    vector, slope = policy.network.vector, gradient.network.vector
    for step in range(len(batches)):
        _differentiate(policy, gradient, work, sampled, loss, batches[step])
        clip_norm(slope, max_grad_norm)
        adam_step(vector, slope, moments.mean, moments.square, moments.steps + step + 1, learning_rate)


@jit_fastmath_helper
def _differentiate(
    policy: PolicyVector,
    gradient: PolicyVector,
    work: Work,
    sampled: Sampled,
    loss: ProximalLoss,
    rows: np.ndarray,
) -> None:
    """The gradient of the loss over a minibatch."""
    outputs, back = work.activations[-1], work.backwards[-1]
    slopes = work.by_log_ratio, work.by_kl
    gather_rows(sampled.observations, rows, work.activations[0])
    propagate(policy.network, work.activations)
    compare(outputs, policy.log_std, rows, sampled, work.log_ratio, work.kl)
    slope_of_loss(loss, rows, work.log_ratio, work.kl, work.by_log_ratio, work.by_kl)
    slope_of_outputs(outputs, policy.log_std, rows, sampled, work.kl, *slopes, back, gradient.log_std)
    backpropagate(policy.network, gradient.network, work.activations, work.backwards)


@jit_fastmath
def look(policy: PolicyVector, work: Work, sampled: Sampled, outputs: np.ndarray) -> float:
    """What the policy puts out in every state, and its mean divergence from what it began with."""
    states, size, total = len(outputs), len(work.kl), 0.0
    for begin in range(0, states, size):
        first = min(begin, states - size)  # the last block overlaps the one before it
        rows = np.arange(first, first + size)
        gather_rows(sampled.observations, rows, work.activations[0])
        propagate(policy.network, work.activations)
        compare(work.activations[-1], policy.log_std, rows, sampled, work.log_ratio, work.kl)
        for i in range(begin - first, size):
            total += work.kl[i]
            for k in range(outputs.shape[1]):
                outputs[first + i, k] = work.activations[-1][i, k]
    return total / states
