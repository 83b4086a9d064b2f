"""Log-ratios and divergences of a minibatch's states, and their derivatives by what the network puts out, compiled.

What `policy.py` has of each distribution for JAX to differentiate, with the derivatives written out. A Gaussian has
the network's outputs as means and deviations of its own, the same in every state; a categorical has neither, and
actions as rows of zeros and a one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.jit import jit_fastmath_inline

# True for a categorical; None, and not False, for a Gaussian: the compiler then leaves out what belongs to the other.
Discrete = Any
_HALF_LOG_TAU = np.float32(0.5 * np.log(2 * np.pi))


class Sampled(NamedTuple):
    """What is known of each sampled state, and of the policy with which the descent began."""

    observations: np.ndarray
    actions: np.ndarray  # (states, outputs)
    log_prob: np.ndarray  # of the actions, under the policy that sampled
    began: np.ndarray  # (states, outputs) means, or log-probabilities
    began_log_std: np.ndarray  # (outputs,); empty for a categorical
    discrete: Discrete


@jit_fastmath_inline
def compare(
    discrete: Discrete,
    outputs: np.ndarray,
    log_std: np.ndarray,
    rows: np.ndarray,
    sampled: Sampled,
    log_ratio: np.ndarray,
    kl: np.ndarray,
) -> None:
    """Log-ratio to the policy that sampled and KL(pi || where the descent began), of each state.

    Of a categorical the outputs become log-probabilities.
    """
    if discrete is None:
        _compare_gaussian(outputs, log_std, rows, sampled, log_ratio, kl)
    else:
        _compare_categorical(outputs, rows, sampled, log_ratio, kl)


@jit_fastmath_inline
def slope_of_outputs(
    discrete: Discrete,
    outputs: np.ndarray,
    log_std: np.ndarray,
    rows: np.ndarray,
    sampled: Sampled,
    kl: np.ndarray,
    by_log_ratio: np.ndarray,
    by_kl: np.ndarray,
    back: np.ndarray,
    by_log_std: np.ndarray,
) -> None:
    """From derivatives by log-ratio and KL to those by the outputs (`back`) and by the deviations."""
    if discrete is None:
        _chain_gaussian(outputs, log_std, rows, sampled, by_log_ratio, by_kl, back, by_log_std)
    else:
        _chain_categorical(outputs, rows, sampled, kl, by_log_ratio, by_kl, back)


@jit_fastmath_inline
def _compare_gaussian(
    mean: np.ndarray, log_std: np.ndarray, rows: np.ndarray, sampled: Sampled, log_ratio: np.ndarray, kl: np.ndarray
) -> None:
    half = np.float32(0.5)
    for i in range(len(rows)):
        log_ratio[i], kl[i] = -sampled.log_prob[rows[i]], np.float32(0)
    for k in range(len(log_std)):
        precision, began_precision = np.exp(-log_std[k]), np.exp(-sampled.began_log_std[k])
        widening = log_std[k] - sampled.began_log_std[k]
        widened = half * np.expm1(np.float32(2) * widening) - widening
        for i in range(len(rows)):
            z = (sampled.actions[rows[i], k] - mean[i, k]) * precision
            shift = (mean[i, k] - sampled.began[rows[i], k]) * began_precision
            log_ratio[i] -= half * z * z + log_std[k] + _HALF_LOG_TAU
            kl[i] += half * shift * shift + widened


@jit_fastmath_inline
def _chain_gaussian(
    mean: np.ndarray,
    log_std: np.ndarray,
    rows: np.ndarray,
    sampled: Sampled,
    by_log_ratio: np.ndarray,
    by_kl: np.ndarray,
    back: np.ndarray,
    by_log_std: np.ndarray,
) -> None:
    one = np.float32(1)
    for k in range(len(log_std)):
        precision, began_precision = np.exp(-log_std[k]), np.exp(-sampled.began_log_std[k])
        widened = np.expm1(np.float32(2) * (log_std[k] - sampled.began_log_std[k]))
        total = np.float32(0)
        for i in range(len(rows)):
            z = (sampled.actions[rows[i], k] - mean[i, k]) * precision
            shift = (mean[i, k] - sampled.began[rows[i], k]) * began_precision
            back[i, k] = by_log_ratio[i] * z * precision + by_kl[i] * shift * began_precision
            total += by_log_ratio[i] * (z * z - one) + by_kl[i] * widened
        by_log_std[k] = total


@jit_fastmath_inline
def _compare_categorical(
    logits: np.ndarray, rows: np.ndarray, sampled: Sampled, log_ratio: np.ndarray, kl: np.ndarray
) -> None:
    for i in range(len(rows)):
        row, largest, total = rows[i], logits[i, 0], np.float32(0)
        for k in range(logits.shape[1]):
            largest = max(largest, logits[i, k])
        for k in range(logits.shape[1]):
            total += np.exp(logits[i, k] - largest)
        whole = largest + np.log(total)
        log_ratio[i], kl[i] = -sampled.log_prob[row], np.float32(0)
        for k in range(logits.shape[1]):
            logits[i, k] -= whole
            log_ratio[i] += sampled.actions[row, k] * logits[i, k]
            kl[i] += np.exp(logits[i, k]) * (logits[i, k] - sampled.began[row, k])


@jit_fastmath_inline
def _chain_categorical(
    log_p: np.ndarray,
    rows: np.ndarray,
    sampled: Sampled,
    kl: np.ndarray,
    by_log_ratio: np.ndarray,
    by_kl: np.ndarray,
    back: np.ndarray,
) -> None:
    for i in range(len(rows)):
        row = rows[i]
        for k in range(log_p.shape[1]):
            p = np.exp(log_p[i, k])
            apart = log_p[i, k] - sampled.began[row, k] - kl[i]
            back[i, k] = by_log_ratio[i] * (sampled.actions[row, k] - p) + by_kl[i] * p * apart
