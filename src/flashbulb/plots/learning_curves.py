"""Curves of several runs in one figure: seeds of an algorithm as mean and confidence band, algorithms as colours, tasks as
rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import recorded_iterations
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_metrics

CONFIDENCE = 0.95
PANELS = {"return": "episode return", "cost": "episode cost"}
# Okabe and Ito's colours, which all eyes can tell apart. MICE has the darker shade of its base's hue.
COLOURS = {
    "cpo": "#56B4E9",
    "mice-cpo": "#0072B2",
    "pid-lag": "#E69F00",
    "mice-pid": "#D55E00",
    "cup": "#009E73",
    "saute": "#CC79A7",
    "simmer-pid": "#7A3E9D",
    "td3-pid": "#8C8C8C",
}
OTHER_COLOURS = ("#009E73", "#CC79A7", "#7A3E9D", "#8C8C8C", "#6B4C2A", "#000000", "#E69F00", "#56B4E9")


class Curves(NamedTuple):
    """One label (by default an algorithm) on one task: a row per seed, over steps that all of them have reached."""

    algorithm: str
    steps: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # name -> (seeds, points)
    limits: set[float]


class Band(NamedTuple):
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def band(values: np.ndarray) -> Band:
    """Mean over seeds with Student's confidence interval; one seed has a band of no width."""
    seeds, mean = len(values), values.mean(axis=0)
    if seeds == 1:
        return Band(mean, mean, mean)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1) * values.std(axis=0, ddof=1) / np.sqrt(seeds)
    return Band(mean, mean - half, mean + half)


def gather(
    runs: list[Path], names: Iterable[str] = PANELS, labels: Mapping[str, str] | None = None
) -> dict[str, dict[str, Curves]]:
    """task -> label -> curves of the columns named. A run without a row that has them all is passed over."""
    groups: dict[str, dict[str, list[tuple[Config, dict[str, np.ndarray]]]]] = {}
    for run in runs:
        config, metrics = load_config(run), _known(read_metrics(run), ("steps", *names))
        if len(metrics["steps"]):
            label = (labels or {}).get(run.name, config.algorithm)
            groups.setdefault(config.env, {}).setdefault(label, []).append((config, metrics))
    return {task: {label: _align(same) for label, same in group.items()} for task, group in groups.items()}


def _known(metrics: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """The columns named, at the rows that have a number in each: some measures are not taken in every iteration."""
    if not set(names) <= set(metrics):
        return {name: np.empty(0) for name in names}
    rows = np.logical_and.reduce([~np.isnan(metrics[name]) for name in names])
    return {name: metrics[name][rows] for name in names}


def _align(runs: list[tuple[Config, dict[str, np.ndarray]]]) -> Curves:
    """Bring seeds to common steps: those of the coarsest run, as far as the shortest goes."""
    columns = [metrics for _, metrics in runs]
    last = min(metrics["steps"][-1] for metrics in columns)
    grids = [metrics["steps"][metrics["steps"] <= last] for metrics in columns]
    steps = min(grids, key=len)
    if not len(steps):
        steps = np.array([last])
    names = [name for name in columns[0] if name != "steps"]
    values = {name: np.stack([np.interp(steps, m["steps"], m[name]) for m in columns]) for name in names}
    return Curves(runs[0][0].algorithm, steps, values, {config.cost_limit for config, _ in runs})


def algorithms_of(tasks: dict[str, dict[str, Curves]]) -> dict[str, str]:
    """label -> algorithm."""
    return {label: curves.algorithm for group in tasks.values() for label, curves in group.items()}


def choose_colours(algorithms: Mapping[str, str]) -> dict[str, str]:
    """Of every label: that of its algorithm, where it is the only label of that algorithm; one of the others if not."""
    known = [algorithm for algorithm in algorithms.values() if algorithm in COLOURS]
    own = {label: COLOURS[algorithm] for label, algorithm in algorithms.items() if known.count(algorithm) == 1}
    free = [colour for colour in OTHER_COLOURS if colour not in own.values()]
    rest = [label for label in algorithms if label not in own]
    return {label: own.get(label) or free[rest.index(label) % len(free)] for label in algorithms}


def draw_comparison(runs: list[Path], output: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    for run in runs:
        if load_config(run) and not recorded_iterations(run / "metrics.csv"):
            raise UsageError(f"run: {run} has no finished iteration to draw; train for longer first.")
    tasks = gather(runs)
    colours = choose_colours(algorithms_of(tasks))
    figure = Figure(figsize=(10, 3.8 * len(tasks)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(tasks), len(PANELS), squeeze=False)
    for axes, (task, group) in zip(rows, tasks.items(), strict=True):
        for panel, (name, words) in zip(axes, PANELS.items(), strict=True):
            draw_panel(panel, group, name, colours, band)
            panel.set(ylabel=words, title=task)
        draw_limits(axes[1], group)
        axes[1].legend(frameon=False, fontsize=8)
    save(figure, output)


def draw_panel(
    axes: Any,
    group: dict[str, Curves],
    name: str,
    colours: dict[str, str],
    band: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    """A line with its band per label; `band` makes middle, low and high of the seeds."""
    for label, curves in group.items():
        seeds = len(curves.values[name])
        middle, low, high = band(curves.values[name])
        axes.plot(curves.steps, middle, color=colours[label], label=label if seeds == 1 else f"{label} ({seeds} seeds)")
        if seeds > 1:
            axes.fill_between(curves.steps, low, high, color=colours[label], alpha=0.2, linewidth=0)
    # A band over two or three seeds may be very wide; the view is that of the seeds themselves.
    lowest = min(float(curves.values[name].min()) for curves in group.values())
    highest = max(float(curves.values[name].max()) for curves in group.values())
    margin = 0.08 * (highest - lowest) or 1.0
    axes.set_ylim(lowest - margin, highest + margin)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_xlabel("environment steps")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))


def draw_limits(axes: Any, group: dict[str, Curves]) -> None:
    """Every limit that the runs had, dashed, on an axis of costs."""
    limits = sorted(set().union(*(curves.limits for curves in group.values())))
    for limit in limits:
        axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit {limit:g}")
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.1 * limits[-1]))


def save(figure: Any, output: Path) -> None:
    try:
        figure.savefig(output, dpi=130)
    except (OSError, ValueError) as error:  # a directory that is not there, or a format that matplotlib does not know
        raise UsageError(f"output: {str(output)!r} cannot be written ({error}).") from None
