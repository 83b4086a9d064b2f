"""The actor's minibatch descent as one compiled loop over `small_network.py`."""

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
from flashbulb.jit import jit_fastmath


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


class Seen(NamedTuple):
    """What the policy is in every state."""

    outputs: np.ndarray  # (states, outputs) means, or log-probabilities
    kl: np.ndarray  # (states,) from where the descent began


def policy_vector(vector: np.ndarray, sizes: tuple[int, ...]) -> PolicyVector:
    """Views of a vector as the policy with a network of these `sizes`."""
    network = layered(vector, sizes)
    return PolicyVector(network, vector[sum(layer.size for layer in (*network.weights, *network.biases)) :])


def work_for(sizes: tuple[int, ...], states: int) -> Work:
    per_state = (np.empty(states, np.float32) for _ in range(4))
    return Work(layer_arrays(sizes, states), layer_arrays(sizes, states), *per_state)


@jit_fastmath
def visit(
    policy: PolicyVector,
    gradient: PolicyVector,
    mean: np.ndarray,
    square: np.ndarray,
    count: int,
    work: Work,
    sampled: Sampled,
    loss: ProximalLoss,
    batches: np.ndarray,
    steps: int,
    seen: Seen,
    learning_rate: np.float32,
    max_grad_norm: np.float32,
) -> None:
    """One step of Adam on each of the first `steps` rows of `batches`; the states of the other rows are looked at.

    Parameters, and Adam's `mean` and `square` after `count` steps are changed in place. Both uses of a row are in one
    loop because a function of its own for each would take twice as long to compile.
    """
    outputs, back = work.activations[-1], work.backwards[-1]
    for n in range(len(batches)):
        rows = batches[n]
        gather_rows(sampled.observations, rows, work.activations[0])
        propagate(policy.network, work.activations)
        compare(sampled.discrete, outputs, policy.log_std, rows, sampled, work.log_ratio, work.kl)
        if n < steps:
            slope_of_loss(loss, rows, work.log_ratio, work.kl, work.by_log_ratio, work.by_kl)
            known, slopes = (outputs, policy.log_std, rows, sampled, work.kl), (work.by_log_ratio, work.by_kl)
            slope_of_outputs(sampled.discrete, *known, *slopes, back, gradient.log_std)
            backpropagate(policy.network, gradient.network, work.activations, work.backwards)
            clip_norm(gradient.network.vector, max_grad_norm)
            adam_step(policy.network.vector, gradient.network.vector, mean, square, count + n + 1, learning_rate)
        else:
            for i in range(len(rows)):
                row = rows[i]
                seen.kl[row] = work.kl[i]
                for k in range(outputs.shape[1]):
                    seen.outputs[row, k] = outputs[i, k]
