"""J_C of an iteration and how well it is known: from the episodes that ended in its batch, or from all steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.batch import Batch, EpisodeMeans, FinishedEpisodes


class RunningEpisodes(NamedTuple):
    """What the environment does not keep itself between two iterations, a row per environment."""

    observations: np.ndarray
    returns: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray

    @classmethod
    def start(cls, observations: np.ndarray, cost_axis: tuple[int, ...] = ()) -> RunningEpisodes:
        """Nothing has happened yet; `cost_axis` is that of the environment's costs."""
        count = len(observations)
        costs = np.zeros((count, *cost_axis))
        return cls(observations.astype(np.float32), np.zeros(count), costs, np.zeros(count, np.int64))


def episode_means(episodes: FinishedEpisodes, running: RunningEpisodes, max_episode_steps: int) -> EpisodeMeans:
    """J_C and its kin, over the episodes that ended in the batch; extrapolated from the running ones if none did."""
    if len(episodes.costs):
        cost = episodes.costs.mean(axis=0)
        return EpisodeMeans(episodes.returns.mean(), cost, float(episodes.lengths.mean()), False)
    scale, cost = max_episode_steps / running.lengths.sum(), running.costs.sum(axis=0)
    return EpisodeMeans(running.returns.sum() * scale, cost * scale, float(max_episode_steps), True)


def step_means(batch: Batch, length: float) -> EpisodeMeans:
    """The same from all steps of the batch: their mean times the `length` of an episode.

    It includes no step of an earlier policy and every environment's layout, and so has less noise. It expects steps of
    all times of an episode, which staggered environments provide.
    """
    count = batch.size / length
    return EpisodeMeans(batch.rewards.sum(dtype=np.float64) / count, batch.cost_sums / count, length, False)


def mean_length(batch: Batch, began: np.ndarray, max_episode_steps: int) -> float:
    """Mean length of an episode under the batch's policy; `began` are the ages of the episodes when the batch began.

    The product-limit estimator (Kaplan and Meier, 1958): from the share of terminations among the steps of each age
    follows how likely an episode is to get that far. Counting the episodes that end in the batch would be wrong by
    chance: many that are cut after `max_episode_steps` may fall into one batch and few into the next.
    """
    ages = step_ages(batch.ended, began)
    steps = np.bincount(ages.ravel(), minlength=max_episode_steps)
    terminations = np.bincount(ages[np.asarray(batch.terminated, bool)], minlength=len(steps))
    survival = np.cumprod(1 - terminations / np.maximum(steps, 1))
    return 1.0 + float(survival[: max_episode_steps - 1].sum())


def step_ages(ended: np.ndarray, began: np.ndarray) -> np.ndarray:
    """(time, env) how many steps an episode has had before each step."""
    time = np.arange(len(ended))[:, None]
    begins = np.zeros(ended.shape, np.int64) - np.asarray(began, np.int64)
    begins[1:] = np.where(ended[:-1], time[1:], begins[1:])
    return time - np.maximum.accumulate(begins, axis=0)


def cost_error(batch: Batch, length: float) -> Any:
    """Standard error of the mean cost of an episode; the steps of an environment are one cluster."""
    sums = batch.costs.sum(axis=0, dtype=np.float64)
    if len(sums) < 2:
        return 0.0 * sums[0]
    return np.sqrt(len(sums) * sums.var(axis=0, ddof=1)) * length / batch.size
