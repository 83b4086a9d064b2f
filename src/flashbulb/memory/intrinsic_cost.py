"""Intrinsic cost: the pseudo-count of a state's visits to remembered danger (equations 4 and 5)."""

from __future__ import annotations

from typing import Literal

import numpy as np

Distance = Literal["raw", "mean", "own-mean"]
Kernel = Literal["squared", "linear"]
CLUSTER = 0.008  # length, in mean ones, up to which two states count as one (NGU, and the authors' code)


def kernel(squared_distance: np.ndarray, xi: float) -> np.ndarray:
    """K(x, y) = xi / (l^2(x, y) + xi), equation 5. A neighbour at infinity counts nothing."""
    return xi / (squared_distance + xi)


def linear_kernel(squared_distance: np.ndarray, xi: float) -> np.ndarray:
    """K = xi / (max(l - 0.008, 0) + xi): the kernel of the authors' code, in l where equation 5 has l^2.

    They give it l over the mean of the k nearest (`rescale` by "own-mean") and xi 1e-4. Where all k distances are 0
    their division is not a number and c^I becomes 0; here it is the largest possible.
    """
    return xi / (np.maximum(np.sqrt(squared_distance) - CLUSTER, 0.0) + xi)


def pseudo_count(squared_distance: np.ndarray, xi: float, form: Kernel = "squared") -> np.ndarray:
    """The sum of K over the k nearest, of which equation 4 takes the root."""
    return (kernel if form == "squared" else linear_kernel)(squared_distance, xi).sum(axis=-1)


def pseudo_count_cost(squared_distance: np.ndarray, k: int, xi: float, form: Kernel = "squared") -> np.ndarray:
    """c^I = sqrt(sum of K over the k nearest), equation 4, divided by sqrt(k).

    The paper normalises c^I without saying how. sqrt(k) is the largest value that the sum can take, so
    c^I lies in [0, 1] and no running statistic can drift. Columns beyond the states that the memory has
    are missing or infinite, and the divisor stays k: one remembered danger weighs less than ten, and a state's own
    entry the less the larger k is. Other readings are in `cost_scale.py`.
    """
    return np.sqrt(pseudo_count(squared_distance, xi, form) / k)


def rescale(squared_distance: np.ndarray, distance: Distance, running_mean: float) -> np.ndarray:
    """The squared distance in the kernel under each reading of the paper's "normalised" (docs/method.md)."""
    if distance == "raw":
        return squared_distance
    if distance == "mean":
        return squared_distance / max(running_mean, np.finfo(np.float32).tiny)
    length = np.sqrt(squared_distance)
    finite = np.isfinite(length)
    own = np.where(finite, length, 0.0).sum(axis=-1, keepdims=True) / np.maximum(finite.sum(-1, keepdims=True), 1)
    return (length / np.maximum(own, np.finfo(np.float32).tiny)) ** 2


def anticipation(intrinsic: np.ndarray, costs: np.ndarray, ended: np.ndarray, within: int = 10) -> float:
    """AUC with which c^I(s_t) tells states that meet a cost in the next `within` steps from those that do not.

    All arrays are (time, env). Only states that are not themselves unsafe count, and only those whose
    next `within` steps (or the rest of their episode) were seen. NaN when one of the two kinds is missing.
    """
    steps = len(costs)
    soon = np.zeros(costs.shape, dtype=bool)
    seen = np.zeros(costs.shape, dtype=bool)
    alive = ~ended  # the episode of s_t still runs at s_{t + ahead}
    for ahead in range(1, within + 1):
        if ahead >= steps:
            break
        soon[: steps - ahead] |= alive[: steps - ahead] & (costs[ahead:] > 0)
        seen[: steps - ahead] |= ~alive[: steps - ahead]
        if ahead == within:
            seen[: steps - ahead] = True
        alive[: steps - ahead] &= ~ended[ahead:]
    asked = (costs <= 0) & (seen | soon)
    return area_under_curve(intrinsic[asked], soon[asked])


def area_under_curve(score: np.ndarray, positive: np.ndarray) -> float:
    """Probability that a positive scores above a negative, ties counted half (Mann-Whitney)."""
    from scipy.stats import rankdata

    positives, negatives = int(positive.sum()), int((~positive).sum())
    if positives == 0 or negatives == 0:
        return float("nan")
    ranks = rankdata(score)[positive].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))
