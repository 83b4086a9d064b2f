"""Statistics over seeds and episodes: interquartile mean, bootstrap intervals, probability of improvement, area.

`plot`, `study` and `report` all show interquartile means with stratified bootstrap intervals, after Agarwal et al.
(2021), "Deep reinforcement learning at the edge of the statistical precipice". Stratified means that seeds are
resampled within each task, never across tasks, because the tasks were chosen and the seeds were not. SciPy resamples
each of several samples separately, which is just that.

Intervals are percentiles of the resamples and not BCa: BCa corrects by a jackknife, which for three values of a trimmed
mean is noise, and is undefined where all seeds agree. With two or three seeds the interval is their range. For normally
distributed seeds it contains the true value in 50 % and 75 % of cases instead of 95 %, and with six seeds in about 90 %
(tests/analysis/test_statistics.py measures it). With one seed there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate, stats

CONFIDENCE = 0.95
RESAMPLES = 4_999
RESAMPLES_OF_A_CURVE = 999  # at each of hundreds of points; more make no visible difference
RESAMPLES_OF_A_MEAN = 9_999
SEED = 0  # of the resampling: the same runs give the same table


class Interval(NamedTuple):
    """A value with its confidence interval; both ends are NaN where a task has one seed, all three where none has."""

    value: float
    low: float
    high: float
    seeds: int  # number of values, over all tasks


class Band(NamedTuple):
    """A value with its confidence interval at every point of a curve."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class MeanInterval(NamedTuple):
    """A mean with its confidence interval, or with none where there is only one value."""

    mean: float
    low: float | None
    high: float | None


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
    """From Mann and Whitney's U, the number of pairs in which the first of two samples is larger."""
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


def mean_interval(values: np.ndarray) -> MeanInterval:
    """The mean of many values, such as those of episodes, with its percentile bootstrap interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return MeanInterval(mean, None, None)
    if np.ptp(values) == 0:
        return MeanInterval(mean, mean, mean)
    rng = np.random.default_rng(SEED)
    options: Any = {"confidence_level": CONFIDENCE, "n_resamples": RESAMPLES_OF_A_MEAN, "rng": rng}
    interval = stats.bootstrap((values,), np.mean, method="percentile", **options).confidence_interval
    return MeanInterval(mean, float(interval.low), float(interval.high))


def student_interval(values: np.ndarray) -> MeanInterval:
    """The mean with Student's interval, for a few values that are means themselves; NaN where there is none."""
    count = len(values)
    if count == 0:
        return MeanInterval(np.nan, None, None)
    mean = float(values.mean())
    if count == 1:
        return MeanInterval(mean, None, None)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * values.std(ddof=1) / math.sqrt(count))
    return MeanInterval(mean, mean - half, mean + half)
