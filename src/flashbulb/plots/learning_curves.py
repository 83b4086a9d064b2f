"""Learning curves: return and cost of one run, or of several runs with seeds as interquartile mean and interval.

Algorithms have fixed colours, the same in `plot`, `study` and `report`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from flashbulb.analysis.experiment import distinct_labels
from flashbulb.analysis.statistics import iqm_band
from flashbulb.config import Config
from flashbulb.cost_limits import CostLimit, limit_columns
from flashbulb.errors import UsageError
from flashbulb.shown_text import note_all
from flashbulb.storage.csv_log import recorded_iterations
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_metrics, readable_runs, repeated_runs

PANELS = {"return": "episode return", "cost": "episode cost"}
# Okabe and Ito's colours, which colour-blind readers can tell apart, and a few more. An algorithm with a memory has a
# darker shade of its base's hue.
COLOURS = {
    "cpo": "#56B4E9",
    "mice-cpo": "#0072B2",
    "pid-lag": "#E69F00",
    "mice-pid": "#D55E00",
    "trpo-pid": "#7FCDB0",
    "mice-salient": "#009E73",
    "cup": "#6B4C2A",
    "saute": "#CC79A7",
    "simmer-pid": "#7A3E9D",
    "c-trpo": "#000000",
    "sb-trpo": "#BCBD22",
    "td3-pid": "#8C8C8C",
    "pid-lag-twin": "#8C8C8C",  # the same algorithm
}
# For other algorithms and for several labels of one, in the order in which they are told apart best.
OTHER_COLOURS = (
    *("#D62728", "#17BECF", "#3B4CC0", "#98DF8A", "#F7B6D2", "#C49C94", "#2F4F4F", "#FFBB78", "#9467BD", "#AEC7E8"),
    *("#8B0000", "#556B2F", "#C7C7C7", "#009E73", "#CC79A7", "#7A3E9D", "#E69F00", "#56B4E9", "#0072B2", "#D55E00"),
    *("#6B4C2A", "#000000", "#BCBD22", "#8C8C8C"),
)


def panel_title(column: str) -> str:
    """What a panel of this column shows: one of `PANELS`, or one of several costs."""
    return PANELS.get(column) or f"{PANELS['cost']}: {column.removeprefix('cost_')}"


class Curves(NamedTuple):
    """The runs of one label (by default an algorithm) on one task: a row per seed, over steps that all have reached."""

    algorithm: str
    steps: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # name -> (seeds, points)
    limits: dict[str, set[float]]  # of the columns of costs


def gather_curves(
    runs: list[Path], names: Iterable[str] = PANELS, labels: Mapping[str, str] | None = None
) -> dict[str, dict[str, Curves]]:
    """task -> label -> curves of the columns named. A run without a row that has them all is left out."""
    groups: dict[str, dict[str, list[tuple[Config, dict[str, np.ndarray]]]]] = {}
    for run in runs:
        config, metrics = load_config(run), _known(read_metrics(run), ("steps", *names))
        if len(metrics["steps"]):
            label = (labels or {}).get(str(run), (labels or {}).get(run.name, config.algorithm))
            groups.setdefault(config.env, {}).setdefault(label, []).append((config, metrics))
    return {task: {label: _align(same) for label, same in group.items()} for task, group in groups.items()}


def _known(metrics: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """The columns named, at the rows without NaN: some measures are not taken in every iteration."""
    if not set(names) <= set(metrics):
        return {name: np.empty(0) for name in names}
    rows = np.logical_and.reduce([~np.isnan(metrics[name]) for name in names])
    return {name: metrics[name][rows] for name in names}


def _align(runs: list[tuple[Config, dict[str, np.ndarray]]]) -> Curves:
    """Interpolate seeds at common steps: those of the coarsest run, as far as the shortest goes."""
    columns = [metrics for _, metrics in runs]
    last = min(metrics["steps"][-1] for metrics in columns)
    grids = [metrics["steps"][metrics["steps"] <= last] for metrics in columns]
    steps = min(grids, key=len)
    if not len(steps):
        steps = np.array([last])
    names = [name for name in columns[0] if name != "steps"]
    values = {name: np.stack([np.interp(steps, m["steps"], m[name]) for m in columns]) for name in names}
    limits: dict[str, set[float]] = {}
    for config, _ in runs:
        for column, limit in limit_columns(config.cost_limit).items():
            limits.setdefault(column, set()).add(limit)
    return Curves(runs[0][0].algorithm, steps, values, limits)


def algorithms_of(tasks: Mapping[str, dict[str, Curves]]) -> dict[str, str]:
    """label -> algorithm."""
    return {label: curves.algorithm for group in tasks.values() for label, curves in group.items()}


def choose_colours(algorithms: Mapping[str, str]) -> dict[str, str]:
    """label -> colour: that of its algorithm if it is called so or is its only label, otherwise a free one."""
    known = [algorithm for algorithm in algorithms.values() if algorithm in COLOURS]
    own = {
        label: COLOURS[algorithm]
        for label, algorithm in algorithms.items()
        if algorithm in COLOURS and (label == algorithm or known.count(algorithm) == 1)
    }
    free = [colour for colour in OTHER_COLOURS if colour not in own.values()]
    rest = [label for label in algorithms if label not in own]
    return {label: own.get(label) or free[rest.index(label) % len(free)] for label in algorithms}


def draw_comparison(runs: list[Path], output: Path) -> None:
    """Return and cost of several runs side by side, a row of panels per task. Runs that are left out are named."""
    runs = list({run.resolve(): run for run in runs}.values())
    runs, left_out = readable_runs(runs)
    begun = [run for run in runs if recorded_iterations(run / "metrics.csv")]
    if not begun:
        raise UsageError(f"run: {runs[0]} has no finished iteration to draw; train for longer first.")
    left_out += [f"{run} is left out: it has no finished iteration to draw." for run in runs if run not in begun]
    configs = {run: load_config(run) for run in begun}
    labels = dict(zip(map(str, begun), distinct_labels([*configs.values()]), strict=True))
    repeated = repeated_runs({run: (labels[str(run)], config.env, config.seed) for run, config in configs.items()})
    note_all([*left_out, *repeated.values()])
    drawn = [run for run in begun if run not in repeated]
    columns = ["return", *sorted({column for run in drawn for column in limit_columns(configs[run].cost_limit)})]
    # A panel has the runs that have its column: some may have one cost and others several.
    panels = {column: gather_curves(drawn, [column], labels) for column in columns}
    tasks = panels["return"]
    colours = choose_colours(algorithms_of(tasks))
    figure = new_figure(5 * len(columns), 3.8 * len(tasks))
    rows = figure.subplots(len(tasks), len(columns), squeeze=False)
    for axes, task in zip(rows, tasks, strict=True):
        for panel, (column, found) in zip(axes, panels.items(), strict=True):
            group = found.get(task, {})
            if group:
                draw_panel(panel, group, column, colours)
            panel.set(ylabel=panel_title(column), title=task)
            if group and column != "return":
                draw_limits(panel, group, column)
                panel.legend(frameon=False, fontsize=8)
    save_figure(figure, output)


def draw_run(metrics: dict[str, np.ndarray], cost_limit: CostLimit, title: str, output: Path | BinaryIO) -> None:
    """Return and costs of one run over environment steps; limits are dashed, iterations above them are marked."""
    limits = limit_columns(cost_limit)
    figure = new_figure(5 * (1 + len(limits)), 3.6)
    reward_axes, *cost_panels = figure.subplots(1, 1 + len(limits))
    steps = metrics["steps"]
    reward_axes.plot(steps, metrics["return"], color="tab:blue")
    reward_axes.set(ylabel=PANELS["return"])
    for cost_axes, (column, limit) in zip(cost_panels, limits.items(), strict=True):
        cost = metrics[column]
        cost_axes.plot(steps, cost, color="tab:orange")
        over = cost > limit
        cost_axes.plot(steps[over], cost[over], ".", color="tab:red", label="above the limit")
        cost_axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit {limit:g}")
        cost_axes.set(ylabel=panel_title(column), ylim=(0, None))
        cost_axes.legend(frameon=False)
    for axes in (reward_axes, *cost_panels):
        _style(axes)
    figure.suptitle(title, fontsize=11)
    figure.savefig(output, dpi=130)


def draw_panel(axes: Any, group: dict[str, Curves], name: str, colours: dict[str, str]) -> None:
    """Per label the interquartile mean over seeds with its interval."""
    for label, curves in group.items():
        seeds = len(curves.values[name])
        band = iqm_band(curves.values[name])
        legend = label if seeds == 1 else f"{label} ({seeds} seeds)"
        axes.plot(curves.steps, band.value, color=colours[label], label=legend)
        if seeds > 1:
            axes.fill_between(curves.steps, band.low, band.high, color=colours[label], alpha=0.2, linewidth=0)
    # A band may be very wide; show the range of the seeds themselves.
    lowest = min(float(curves.values[name].min()) for curves in group.values())
    highest = max(float(curves.values[name].max()) for curves in group.values())
    margin = 0.08 * (highest - lowest) or 1.0
    axes.set_ylim(lowest - margin, highest + margin)
    _style(axes)


def _style(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_xlabel("environment steps")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))


def draw_limits(axes: Any, group: dict[str, Curves], column: str = "cost") -> None:
    """A dashed line at every limit of the runs for this column, on its axis."""
    limits = sorted(set().union(*(curves.limits.get(column, set()) for curves in group.values())))
    for limit in limits:
        axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit {limit:g}")
    axes.set_ylim(0, max([axes.get_ylim()[1], *(1.1 * limit for limit in limits)]))


def new_figure(width: float, height: float) -> Any:
    """A figure that needs no display and no global state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, output: Path) -> None:
    try:
        figure.savefig(output, dpi=130)
    except (OSError, ValueError) as error:  # no such directory, or a format that matplotlib does not know
        raise UsageError(f"output: {str(output)!r} cannot be written ({error}).") from None
