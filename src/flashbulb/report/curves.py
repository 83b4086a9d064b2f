"""The charts of a task: learning curves as interquartile means with intervals, and the shares of CPO's cases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.cpo import FROM_INSIDE, FROM_OUTSIDE, RECOVER, UNCONSTRAINED
from flashbulb.analysis.statistics import iqm_band
from flashbulb.cost_limits import limit_columns
from flashbulb.report.encoding import rounded
from flashbulb.report.run_groups import ReportRun
from flashbulb.report.verdict import RANGE_SEEDS

MAX_POINTS = 500  # of a curve; the paper's 1e7 steps are 500 iterations
MAX_BINS = 25  # of a chart of shares
CASES = {
    RECOVER: "recovery: cost only",
    FROM_OUTSIDE: "infeasible start",
    FROM_INSIDE: "feasible start",
    UNCONSTRAINED: "constraint inactive",
}


class Chart(NamedTuple):
    column: str
    title: str
    note: str = ""
    memory_only: bool = False  # only for algorithms with a memory
    zero_is_missing: bool = False  # the column is 0 in iterations without an unsafe state


CHARTS = (
    Chart("return", "Episode return"),
    Chart("cost", "Episode cost"),
    Chart(
        "critic_bias_sampled_unsafe",
        "Bias of the cost critic at unsafe states",
        "V_C minus the sampled discounted cost",
        zero_is_missing=True,
    ),
    Chart("critic_bias_rollout", "True bias of the cost critic", "V_C minus the mean of rollouts from visited states"),
    Chart("critic_bias_rollout_risky", "True bias at risky states", "the same at states with a cost within ten steps"),
    Chart("beta", "Balancing factor β", "factor of the intrinsic cost", memory_only=True),
    Chart("memory_size", "States in the flashbulb memory", "unsafe states of the latest iterations", memory_only=True),
)


def learning_charts(task: dict[str, list[ReportRun]]) -> list[dict[str, Any]]:
    """The charts of a task with the limits of their columns; those without data are left out."""
    drawn = []
    limits: dict[str, set[float]] = {}
    for run in (run for runs in task.values() for run in runs):
        for column, limit in limit_columns(run.config.cost_limit).items():
            limits.setdefault(column, set()).add(limit)
    for chart in _with_each_cost(limits):
        series = [line for label, runs in task.items() if (line := _series(label, runs, chart)) is not None]
        if series:
            about = {"column": chart.column, "title": chart.title, "note": chart.note}
            drawn.append({**about, "limits": sorted(limits.get(chart.column, ())), "series": series})
    return drawn


def _with_each_cost(columns: Iterable[str]) -> list[Chart]:
    """The charts; one for each of several costs in place of that of the leading one."""
    several = sorted(column for column in columns if column != "cost")
    each = [Chart(column, f"Episode cost: {column.removeprefix('cost_')}") for column in several]
    rest = CHARTS[1:] if "cost" in columns or not several else CHARTS[2:]
    return [CHARTS[0], *each, *rest]


def _series(label: str, runs: list[ReportRun], chart: Chart) -> dict[str, Any] | None:
    known = [run.metrics for run in runs if run.done and chart.column in run.metrics]
    if chart.memory_only:
        known = [metrics for metrics in known if metrics["memory_size"].any()]
    if not known:
        return None
    if chart.zero_is_missing:
        known = [m | {chart.column: np.where(m[chart.column] == 0, np.nan, m[chart.column])} for m in known]
    steps, values = align(known, chart.column)
    if not len(steps):
        return None
    band = iqm_band(values)
    seeds = len(values)
    ends = {"low": rounded(band.low), "high": rounded(band.high), "is_range": seeds <= RANGE_SEEDS} if seeds > 1 else {}
    return {"label": label, "seeds": seeds, "steps": steps.tolist(), "value": rounded(band.value), **ends}


def align(runs: list[dict[str, np.ndarray]], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps (points,) and values (seeds, points) where every seed has a value; seeds without any value are left out.

    The values are those of metrics.csv. Only if the seeds have different iterations are they interpolated, at the steps
    of the seed with the fewest iterations, up to the end of the shortest seed.
    """
    runs = [run for run in runs if np.isfinite(run[column]).any()]
    if not runs:
        return np.zeros(0), np.zeros((0, 0))
    known = [(run["steps"][ok], run[column][ok]) for run in runs for ok in [np.isfinite(run[column])]]
    grids = [run["steps"] for run in runs]
    steps = min(grids, key=len)
    if all(np.array_equal(grid[: len(steps)], steps) for grid in grids):
        steps = np.array(sorted(set.intersection(*(set(own.tolist()) for own, _ in known))))
    else:
        first, last = max(own[0] for own, _ in known), min(own[-1] for own, _ in known)
        steps = steps[(steps >= first) & (steps <= last)]
    steps = steps[_thin(len(steps))]
    return steps, np.stack([np.interp(steps, own, values) for own, values in known])


def _thin(count: int) -> np.ndarray:
    """Evenly spaced indices of the points to draw, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(MAX_POINTS, count)).round().astype(int))


def cpo_case_charts(task: dict[str, list[ReportRun]]) -> list[dict[str, Any]]:
    """For each label with CPO's step, the shares of its cases over the seeds, in bins of iterations."""
    found = []
    for label, runs in task.items():
        rows = [run.metrics for run in runs if run.done and "cpo_case" in run.metrics]
        if rows:
            steps, case = (np.concatenate([row[name] for row in rows]) for name in ("steps", "cpo_case"))
            found.append({"label": label, "names": list(CASES.values()), **case_shares(steps, case)})
    return found


def case_shares(steps: np.ndarray, case: np.ndarray) -> dict[str, Any]:
    """Edges of bins over steps, and the share of each case in each bin; null in an empty bin."""
    bins = min(MAX_BINS, len(np.unique(steps)))
    edges = np.linspace(0, steps.max(), bins + 1)
    which = np.clip(np.searchsorted(edges, steps, side="left") - 1, 0, bins - 1)  # the right edge belongs to the bin
    counts = np.array([[np.sum((which == b) & (case == k)) for k in CASES] for b in range(bins)], float)
    total = counts.sum(axis=1, keepdims=True)
    part = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    return {"edges": rounded(edges), "shares": [rounded(row) for row in part]}
