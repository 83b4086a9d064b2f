"""What a run reports in each iteration: measures of METHOD.md, section 7."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.memory import FlashbulbMemory, anticipation
from flashbulb.run.collect import Batch, InFlight
from flashbulb.run.csv_log import Row


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
    standard_error: float  # of the cost


def episode_means(batch: Batch, flight: InFlight, max_episode_steps: int, estimate: str = "episodes") -> EpisodeMeans:
    """By the episodes that finished, or by all steps: what they cost over how many episodes fit into them.

    The latter sees no policy but the one that sampled, and every member's layout; it needs members whose phases
    are spread over an episode, as staggered ones are, so that as many episodes begin as end.
    """
    done, standard_error = batch.finished, cost_standard_error(batch, max_episode_steps)
    if estimate == "steps":
        fit = episodes_that_fit(batch, max_episode_steps)
        means = batch.rewards.sum(dtype=np.float64) / fit, batch.costs.sum(dtype=np.float64) / fit
        return EpisodeMeans(*means, batch.costs.size / fit, False, standard_error)
    if len(done.costs):
        return EpisodeMeans(done.returns.mean(), done.costs.mean(), float(done.lengths.mean()), False, standard_error)
    scale = max_episode_steps / flight.lengths.sum()
    means = flight.returns.sum() * scale, flight.costs.sum() * scale
    return EpisodeMeans(*means, float(max_episode_steps), True, standard_error)


def episodes_that_fit(batch: Batch, max_episode_steps: int) -> float:
    """How many episodes the batch amounts to: as many as end in it, and no fewer than its steps make full ones."""
    return max(float(batch.ended.sum()), batch.costs.size / max_episode_steps)


def cost_standard_error(batch: Batch, max_episode_steps: int) -> float:
    """Of the mean cost of an episode, with a member's steps as one cluster."""
    sums = batch.costs.sum(axis=0, dtype=np.float64)
    if len(sums) < 2:
        return 0.0
    return float(np.sqrt(len(sums) * sums.var(ddof=1)) / episodes_that_fit(batch, max_episode_steps))


def episode_rows(batch: Batch, iteration: int, steps_before: int) -> list[Row]:
    members = batch.costs.shape[1]
    return [
        {
            "iteration": iteration,
            "steps": steps_before + (int(step) + 1) * members,
            "member": int(member),
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
) -> Row:
    """A row of metrics.csv: a function of the configuration and the seed alone, so nothing of clocks."""
    iterations = int(totals.iterations)
    return {
        "iteration": n,
        "steps": int(totals.steps),
        "return": float(means.returns),
        "cost": float(means.cost),
        "finished_cost": float(batch.finished.costs.mean()) if len(batch.finished.costs) else float("nan"),
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
