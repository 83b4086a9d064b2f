"""How c^I is normalised, which the paper does ("the intrinsic cost is normalized") without saying how.

By sqrt(k), the largest value of equation 4; not at all (equation 4 as printed, and the authors' code); or by a
statistic of the c^I of the run so far, this batch included. Nothing is subtracted: Theorem 1 needs c^I >= 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from flashbulb.normaliser import Normaliser

Scale = Literal["sqrt-k", "none", "max", "deviation"]
RUNNING = ("max", "deviation")


def start_statistics(scale: Scale) -> np.ndarray | tuple[()]:
    """Number, mean, variance and maximum of the c^I so far; nothing where the scale needs none of them."""
    return np.array([0.0, 0.0, 1.0, 0.0]) if scale in RUNNING else ()


def absorb(statistics: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The statistics with another batch of unscaled c^I in them."""
    seen, mean, variance, largest = statistics
    moments = Normaliser(np.asarray(seen), np.array([mean]), np.array([variance])).absorb(cost)
    return np.array([moments.seen, moments.mean[0], moments.variance[0], max(largest, cost.max(initial=0.0))])


def divisor(statistics: np.ndarray, scale: Scale) -> float:
    """What c^I is divided by; 1 while the statistic is 0, which it is as long as all c^I are the same, or 0."""
    largest, deviation = statistics[3], np.sqrt(statistics[2])
    size = float(largest if scale == "max" else deviation)
    return size if size > 1e-6 else 1.0
