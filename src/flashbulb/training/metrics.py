"""The rows of metrics.csv and episodes.csv, and the sums over a run behind them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.batch import Batch
from flashbulb.cost_limits import CostLimit, leading_cost
from flashbulb.memory import FlashbulbMemory, Memories, anticipation
from flashbulb.storage.csv_log import CsvRow


class CostTotals(NamedTuple):
    """Sums over the run so far of each of several costs, (K,)."""

    cost: np.ndarray
    violations: np.ndarray
    excess: np.ndarray


class Totals(NamedTuple):
    """Sums over the run so far, behind violation rate, mean excess and cost rate."""

    iterations: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    cost: np.ndarray  # of several costs the sum
    violations: np.ndarray  # of several costs those by the leading one: iterations in which any limit was exceeded
    excess: np.ndarray
    each: Any = ()  # CostTotals, if there are several costs

    @classmethod
    def start(cls, several: int = 0) -> Totals:
        """Before the first iteration, with one cost or with so many named ones."""
        zeros = cls(*(np.zeros((), np.int64) for _ in range(3)), *(np.zeros(()) for _ in range(3)))
        return zeros._replace(each=CostTotals(*(np.zeros(several) for _ in range(3)))) if several else zeros

    def add(self, batch: Batch, cost_limit: CostLimit) -> Totals:
        cost, limit = leading_cost(batch.means.cost, cost_limit)
        each = self.each
        if isinstance(cost_limit, dict):
            over = batch.means.cost - np.array(list(cost_limit.values()))
            each = CostTotals(each.cost + batch.cost_sums, each.violations + (over > 0), each.excess + over.clip(0))
        return Totals(
            self.iterations + 1,
            self.steps + batch.size,
            self.episodes + len(batch.episodes.costs),
            self.cost + batch.cost_sums.sum(),
            self.violations + float(cost > limit),
            self.excess + max(cost - limit, 0.0),
            each,
        )


def episode_rows(batch: Batch, steps_before: int, cost_limit: CostLimit) -> list[CsvRow]:
    """A row per episode that ended in the batch."""
    num_envs = batch.costs.shape[1]
    return [
        {
            "iteration": batch.iteration,
            "steps": steps_before + (int(step) + 1) * num_envs,
            "env": int(env),
            "return": float(returns),
            "cost": float(leading_cost(cost, cost_limit)[0]),
            "length": int(length),
            **(_columns("cost", cost, cost_limit) if batch.several_costs else {}),
        }
        for step, env, returns, cost, length in zip(*batch.episodes, strict=True)
    ]


def metrics_row(
    batch: Batch, totals: Totals, memories: Memories, measured: dict[str, Any], cost_limit: CostLimit
) -> CsvRow:
    """A row of metrics.csv: a function of the configuration and the seed alone, so no times.

    Columns of several costs are `COLUMN_NAME`. Beside them, `cost` and `limit` are those of the leading cost.
    """
    iterations, steps, means = int(totals.iterations), int(totals.steps), batch.means
    cost, limit = leading_cost(means.cost, cost_limit)
    finished = batch.episodes.costs.mean(axis=0) if len(batch.episodes.costs) else np.nan * batch.costs[0, 0]

    def columns(name: str, value: Any) -> CsvRow:
        return _columns(name, value, cost_limit)

    row: CsvRow = {
        "iteration": batch.iteration,
        "steps": steps,
        "return": float(means.returns),
        "cost": float(cost),
        **({"limit": float(limit)} if batch.several_costs else {}),
        **columns("cost", means.cost),
        **columns("cost_standard_error", means.cost_error),
        **columns("finished_cost", finished),
        "length": means.length,
        "episodes": len(batch.episodes.costs),
        "episode_estimated": int(means.estimated),
        "violation_rate": float(totals.violations) / iterations,
        "mean_excess": float(totals.excess) / iterations,
        "cost_rate": float(totals.cost) / steps,
    }
    if batch.several_costs:
        row |= columns("violation_rate", totals.each.violations / iterations)
        row |= columns("mean_excess", totals.each.excess / iterations) | columns("cost_rate", totals.each.cost / steps)
    row |= _memory_columns(batch, memories)
    return row | {column: x for name, value in measured.items() for column, x in columns(name, value).items()}


def _memory_columns(batch: Batch, memories: Memories) -> CsvRow:
    """What the cost stream did, for the one cost or for each."""
    if not isinstance(memories, FlashbulbMemory):
        row: CsvRow = {"memory_size": sum(memory.size for memory in memories.values())}
        for k, (name, memory) in enumerate(memories.items()):
            row |= {f"{column}_{name}": x for column, x in _memory_columns(batch.of_cost(k), memory).items()}
        return row
    known = memories.size > 0
    return {
        "beta": float(np.mean(batch.beta)),
        "intrinsic_cost": float(batch.intrinsic.mean()),
        "memory_size": memories.size,
        "anticipation": anticipation(batch.intrinsic, batch.costs, batch.ended) if known else float("nan"),
    }


def _columns(column: str, value: Any, cost_limit: CostLimit) -> CsvRow:
    """A number as a column of that name; numbers of several costs, (K,), as a column for each."""
    if np.ndim(value) == 0:
        return {column: float(value)}
    return {f"{column}_{name}": float(x) for name, x in zip(cost_limit, value, strict=True)}  # type: ignore[arg-type]
