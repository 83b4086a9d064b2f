"""The rows of metrics.csv and episodes.csv, and the sums over a run behind them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.batch import Batch
from flashbulb.memory import FlashbulbMemory, anticipation
from flashbulb.storage.csv_log import CsvRow


class Totals(NamedTuple):
    """Sums over the run so far, behind violation rate, mean excess and cost rate."""

    iterations: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    cost: np.ndarray
    violations: np.ndarray
    excess: np.ndarray

    @classmethod
    def start(cls) -> Totals:
        return cls(*(np.zeros((), np.int64) for _ in range(3)), *(np.zeros(()) for _ in range(3)))

    def add(self, batch: Batch, limit: float) -> Totals:
        return Totals(
            self.iterations + 1,
            self.steps + batch.size,
            self.episodes + len(batch.episodes.costs),
            self.cost + batch.costs.sum(dtype=np.float64),
            self.violations + float(batch.means.cost > limit),
            self.excess + max(batch.means.cost - limit, 0.0),
        )


def episode_rows(batch: Batch, steps_before: int) -> list[CsvRow]:
    """A row per episode that ended in the batch."""
    num_envs = batch.costs.shape[1]
    return [
        {
            "iteration": batch.iteration,
            "steps": steps_before + (int(step) + 1) * num_envs,
            "env": int(env),
            "return": float(returns),
            "cost": float(cost),
            "length": int(length),
        }
        for step, env, returns, cost, length in zip(*batch.episodes, strict=True)
    ]


def metrics_row(batch: Batch, totals: Totals, memory: FlashbulbMemory, measured: dict[str, Any]) -> CsvRow:
    """A row of metrics.csv: a function of the configuration and the seed alone, so no times."""
    iterations, means = int(totals.iterations), batch.means
    known = memory.size > 0
    return {
        "iteration": batch.iteration,
        "steps": int(totals.steps),
        "return": float(means.returns),
        "cost": float(means.cost),
        "cost_standard_error": means.cost_error,
        "finished_cost": float(batch.episodes.costs.mean()) if len(batch.episodes.costs) else float("nan"),
        "length": means.length,
        "episodes": len(batch.episodes.costs),
        "episode_estimated": int(means.estimated),
        "violation_rate": float(totals.violations) / iterations,
        "mean_excess": float(totals.excess) / iterations,
        "cost_rate": float(totals.cost) / int(totals.steps),
        "beta": float(np.mean(batch.beta)),
        "intrinsic_cost": float(batch.intrinsic.mean()),
        "memory_size": memory.size,
        "anticipation": anticipation(batch.intrinsic, batch.costs, batch.ended) if known else float("nan"),
        **{name: float(value) for name, value in measured.items()},
    }
