"""The losses of PPO, CUP's projection, FOCOPS and P3O as one family, and its derivatives in compiled code.

A loss sees a state only through two numbers, its log-ratio log pi/pi_k and its divergence from the policy with which
the descent began. What it hands back is its derivative by each of them; `distribution_slopes.py` knows the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flashbulb.jit import jit_fastmath_inline, jit_inline


class ProximalLoss(NamedTuple):
    """The mean over states of 1[KL <= near] (kl_weight KL - min(ratio A, clip(ratio) A)), plus
    kappa (c + the mean over states of max(ratio A_C, clip(ratio) A_C))_+.

    Without a clip, bounded by infinity, the minimum is ratio A itself.
    """

    advantage: np.ndarray  # A, (states,)
    cost_advantage: np.ndarray  # A_C, (states,); without kappa it may be empty
    clip: np.float32 = np.float32(np.inf)
    kl_weight: np.float32 = np.float32(0)
    near: np.float32 = np.float32(np.inf)
    kappa: np.float32 = np.float32(0)
    c: np.float32 = np.float32(0)


@jit_inline
def _moves(ratio: np.float32, advantage: np.float32, clip: np.float32) -> bool:
    """Whether min(ratio A, clip(ratio) A) changes with the ratio."""
    one = np.float32(1)
    return not ((advantage > 0 and ratio > one + clip) or (advantage < 0 and ratio < one - clip))


@jit_fastmath_inline
def slope_of_loss(
    loss: ProximalLoss,
    rows: np.ndarray,
    log_ratio: np.ndarray,
    kl: np.ndarray,
    by_log_ratio: np.ndarray,
    by_kl: np.ndarray,
) -> None:
    """Derivatives of a minibatch's loss by the log-ratio and the KL of each of its states."""
    share = np.float32(1) / np.float32(len(rows))
    for i in range(len(rows)):
        by_log_ratio[i] = np.exp(log_ratio[i])
    price = np.float32(0)
    if loss.kappa > 0 and loss.c + _rise(loss, rows, by_log_ratio) > 0:
        price = loss.kappa
    for i in range(len(rows)):
        ratio, row, gain = by_log_ratio[i], rows[i], np.float32(0)
        by_kl[i] = np.float32(0)
        if kl[i] <= loss.near:
            by_kl[i] = loss.kl_weight * share
            if _moves(ratio, loss.advantage[row], loss.clip):
                gain += loss.advantage[row]
        if price > 0 and _moves(ratio, -loss.cost_advantage[row], loss.clip):
            gain -= price * loss.cost_advantage[row]
        by_log_ratio[i] = -gain * ratio * share if gain != 0 else np.float32(0)  # the ratio may be infinite


@jit_fastmath_inline
def _rise(loss: ProximalLoss, rows: np.ndarray, ratios: np.ndarray) -> np.float32:
    """How much the cost per step rises, by an estimate from above."""
    one, total = np.float32(1), np.float32(0)
    for i in range(len(rows)):
        advantage = loss.cost_advantage[rows[i]]
        bounded = min(max(ratios[i], one - loss.clip), one + loss.clip)
        total += max(ratios[i] * advantage, bounded * advantage)
    return total / np.float32(len(rows))
