"""What a handful of seeds can say: interquartile mean, bootstrap intervals, probability of improvement, area.

Agarwal et al. (2021), "Deep reinforcement learning at the edge of the statistical precipice", is where the field has
these from; all are SciPy's. The bootstrap is stratified: seeds are drawn anew within each task, never across tasks,
because the tasks were chosen and the seeds were not. SciPy resamples each of several samples on its own, which is that.

Intervals are percentiles of the resamples and not BCa: BCa corrects by a jackknife, which for three values of a trimmed
mean is noise, and it has no answer where all seeds agree. Neither makes many seeds of few. With two or three seeds the
interval is their range; where seeds are normal it holds the truth in 50 % and 75 % of cases and not in 95 %, and with
six seeds in about 90 % (tests/study/test_statistics.py measures it). With one seed there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import integrate, stats

CONFIDENCE = 0.95
RESAMPLES = 4_999
RESAMPLES_OF_A_CURVE = 999  # at each of hundreds of points; an eye cannot tell them from more
SEED = 0  # of the resampling: the same runs give the same table


class Interval(NamedTuple):
    """An estimate with its confidence interval; both ends are NaN where a task has one seed, all are where none has."""

    value: float
    low: float
    high: float
    seeds: int  # values that it rests on, over all tasks


class Band(NamedTuple):
    """The same at every point of a curve."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def iqm(*tasks: np.ndarray, axis: int = -1) -> np.ndarray:
    """Interquartile mean: the mean without the lowest and the highest quarter of all seeds of all tasks.

    A quarter is rounded down, so for three values or fewer it is the mean.
    """
    return stats.trim_mean(np.concatenate(tasks, axis=axis), 0.25, axis=axis)


def iqm_interval(tasks: Sequence[np.ndarray]) -> Interval:
    """Interquartile mean over one or several tasks, a sample of seeds each. NaN is a seed that has no such value."""
    known = [sample[~np.isnan(sample)] for sample in tasks]
    seeds = sum(map(len, known))
    if not seeds:
        return Interval(np.nan, np.nan, np.nan, 0)
    return Interval(float(iqm(*known)), *_ends(known, iqm), seeds)


def improvement(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> Interval:
    """P(X > Y) of a seed of ours and one of theirs on the same task, ties as half, averaged over the tasks."""
    samples = [*ours, *theirs]
    seeds = sum(map(len, samples))
    if not min(map(len, samples), default=0):
        return Interval(np.nan, np.nan, np.nan, seeds)
    return Interval(float(_mean_superiority(*samples)), *_ends(samples, _mean_superiority), seeds)


def _mean_superiority(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mann and Whitney's U counts the pairs that the first of two samples wins."""
    half = len(samples) // 2
    shares = []
    for x, y in zip(samples[:half], samples[half:], strict=True):
        wins = stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic  # the method is that of its p-value
        shares.append(wins / (x.shape[axis] * y.shape[axis]))
    return np.mean(shares, axis=0)


def _ends(samples: Sequence[np.ndarray], statistic: Callable[..., np.ndarray]) -> tuple[float, float]:
    if min(map(len, samples)) < 2:
        return np.nan, np.nan
    found = stats.bootstrap(
        samples, statistic, method="percentile", confidence_level=CONFIDENCE, n_resamples=RESAMPLES, rng=SEED
    ).confidence_interval
    return float(found.low), float(found.high)


def iqm_band(values: np.ndarray) -> Band:
    """Interquartile mean over seeds, the rows of a task's curves, with the interval of each point."""
    middle = iqm(values, axis=0)
    if len(values) < 2:
        return Band(middle, np.full_like(middle, np.nan), np.full_like(middle, np.nan))
    found = stats.bootstrap(
        [values],
        iqm,
        axis=0,
        method="percentile",
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES_OF_A_CURVE,
        rng=SEED,
    ).confidence_interval
    return Band(middle, found.low, found.high)


def area_under(values: np.ndarray, steps: np.ndarray) -> float:
    """Area under a curve over its width in steps, which is its mean height; of a single point, its height."""
    if len(values) < 2:
        return float(values[0]) if len(values) else np.nan
    return float(integrate.trapezoid(values, steps) / (steps[-1] - steps[0]))
