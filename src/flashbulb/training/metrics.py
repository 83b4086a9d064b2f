"""What a run reports in each iteration: measures of METHOD.md, section 7."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.memory import FlashbulbMemory, anticipation
from flashbulb.storage.csv_log import CsvRow
from flashbulb.training.collect import Batch, RunningEpisodes


class Totals(NamedTuple):
    """Sums over the run so far, behind violation rate, mean excess and cost rate (METHOD.md, section 7)."""

    iterations: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    cost: np.ndarray
    violations: np.ndarray
    excess: np.ndarray

    @classmethod
    def start(cls) -> Totals:
        return cls(*(np.zeros((), np.int64) for _ in range(3)), *(np.zeros(()) for _ in range(3)))

    def add(self, batch: Batch, episode_cost: float, limit: float) -> Totals:
        return Totals(
            self.iterations + 1,
            self.steps + batch.costs.size,
            self.episodes + len(batch.finished.costs),
            self.cost + batch.costs.sum(dtype=np.float64),
            self.violations + float(episode_cost > limit),
            self.excess + max(episode_cost - limit, 0.0),
        )


class EpisodeMeans(NamedTuple):
    """Means over the episodes that finished in this batch, and over no older ones."""

    returns: float
    cost: float
    length: float
    estimated: bool  # none finished: extrapolated from the running episodes


def episode_means(batch: Batch, running: RunningEpisodes, max_episode_steps: int) -> EpisodeMeans:
    done = batch.finished
    if len(done.costs):
        return EpisodeMeans(done.returns.mean(), done.costs.mean(), float(done.lengths.mean()), False)
    scale = max_episode_steps / running.lengths.sum()
    return EpisodeMeans(running.returns.sum() * scale, running.costs.sum() * scale, float(max_episode_steps), True)


def episode_rows(batch: Batch, iteration: int, steps_before: int) -> list[CsvRow]:
    members = batch.costs.shape[1]
    return [
        {
            "iteration": iteration,
            "steps": steps_before + (int(step) + 1) * members,
            "env": int(member),
            "return": float(returns),
            "cost": float(cost),
            "length": int(length),
        }
        for step, member, returns, cost, length in zip(*batch.finished, strict=True)
    ]


def metrics_row(
    n: int,
    batch: Batch,
    means: EpisodeMeans,
    totals: Totals,
    report: dict[str, Any],
    beta: float,
    intrinsic: np.ndarray,
    memory: FlashbulbMemory,
) -> CsvRow:
    """A row of metrics.csv: a function of the configuration and the seed alone, so nothing of clocks."""
    iterations = int(totals.iterations)
    return {
        "iteration": n,
        "steps": int(totals.steps),
        "return": float(means.returns),
        "cost": float(means.cost),
        "length": means.length,
        "episodes": len(batch.finished.costs),
        "episode_estimated": int(means.estimated),
        "violation_rate": float(totals.violations) / iterations,
        "mean_excess": float(totals.excess) / iterations,
        "cost_rate": float(totals.cost) / int(totals.steps),
        "beta": beta,
        "intrinsic_cost": float(intrinsic.mean()),
        "memory_size": memory.size,
        "anticipation": anticipation(intrinsic, batch.costs, batch.ended) if memory.size else float("nan"),
        **{name: float(value) for name, value in report.items()},
    }
