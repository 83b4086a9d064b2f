"""What is drawn over steps: seeds as interquartile mean and band, and the shares of CPO's cases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.cpo import FROM_INSIDE, FROM_OUTSIDE, RECOVER, UNCONSTRAINED
from flashbulb.analysis.statistics import iqm_band
from flashbulb.report.packing import rounded
from flashbulb.report.run_groups import Subject

POINTS = 500  # of a curve, at most; the paper's ten million steps have as many iterations
BINS = 25  # of a chart of shares
CASES = {
    RECOVER: "recover: cost alone",
    FROM_OUTSIDE: "back from outside",
    FROM_INSIDE: "constrained, from inside",
    UNCONSTRAINED: "constraint out of reach",
}


class Chart(NamedTuple):
    column: str
    title: str
    note: str = ""
    memory_only: bool = False  # says nothing about an algorithm that remembers nothing
    zero_is_none: bool = False  # an iteration without an unsafe state has a zero in its place


CHARTS = (
    Chart("return", "Episode return"),
    Chart("cost", "Episode cost"),
    Chart(
        "critic_bias_sampled_unsafe",
        "Bias of the cost critic at unsafe states",
        "V_C minus the sampled discounted cost",
        zero_is_none=True,
    ),
    Chart("critic_bias_rollout", "True bias of the cost critic", "V_C minus the mean of rollouts from visited states"),
    Chart("critic_bias_rollout_risky", "True bias at risky states", "the same where a cost comes within ten steps"),
    Chart("beta", "Balancing factor β", "by which the intrinsic cost is multiplied", memory_only=True),
    Chart("memory_size", "States in the flashbulb memory", "unsafe ones of the latest iterations", memory_only=True),
)


def charts(task: dict[str, list[Subject]]) -> list[dict[str, Any]]:
    """Those of a task that have something to show."""
    drawn = []
    for chart in CHARTS:
        series = [line for label, runs in task.items() if (line := _series(label, runs, chart)) is not None]
        if series:
            drawn.append({"column": chart.column, "title": chart.title, "note": chart.note, "series": series})
    return drawn


def _series(label: str, runs: list[Subject], chart: Chart) -> dict[str, Any] | None:
    begun = [run.metrics for run in runs if run.done and chart.column in run.metrics]
    if chart.memory_only:
        begun = [metrics for metrics in begun if metrics["memory_size"].any()]
    if not begun:
        return None
    if chart.zero_is_none:
        begun = [m | {chart.column: np.where(m[chart.column] == 0, np.nan, m[chart.column])} for m in begun]
    steps, values = align(begun, chart.column)
    if not len(steps):
        return None
    band = iqm_band(values)
    ends = {} if len(values) == 1 else {"low": rounded(band.low), "high": rounded(band.high)}
    return {"label": label, "seeds": len(values), "steps": steps.tolist(), "value": rounded(band.value), **ends}


def align(runs: list[dict[str, np.ndarray]], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps (points,) and values (seeds, points), where every seed has one; a seed that has none at all is left out.

    They are rows of metrics.csv as they stand; only seeds whose iterations differ are brought, by interpolation, to the
    steps of the coarsest, as far as the shortest goes.
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
    steps = steps[thin(len(steps))]
    return steps, np.stack([np.interp(steps, own, values) for own, values in known])


def thin(count: int) -> np.ndarray:
    """Which of so many points are drawn: evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(POINTS, count)).round().astype(int))


def cases(task: dict[str, list[Subject]]) -> list[dict[str, Any]]:
    """For each label that takes CPO's step, how often it was which, over seeds and neighbouring iterations."""
    found = []
    for label, runs in task.items():
        rows = [run.metrics for run in runs if run.done and "cpo_case" in run.metrics]
        if rows:
            steps, case = (np.concatenate([row[name] for row in rows]) for name in ("steps", "cpo_case"))
            found.append({"label": label, "names": list(CASES.values()), **shares(steps, case)})
    return found


def shares(steps: np.ndarray, case: np.ndarray) -> dict[str, Any]:
    """Edges of bins over steps, and the share of each case in each bin; null where nothing happened."""
    bins = min(BINS, len(np.unique(steps)))
    edges = np.linspace(0, steps.max(), bins + 1)
    which = np.clip(np.searchsorted(edges, steps, side="left") - 1, 0, bins - 1)  # a bin holds its right edge
    counts = np.array([[np.sum((which == b) & (case == k)) for k in CASES] for b in range(bins)], float)
    total = counts.sum(axis=1, keepdims=True)
    part = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    return {"edges": rounded(edges), "shares": [rounded(row) for row in part]}
