"""The paper's figures from run directories, tasks side by side with one legend.

curves  return and cost against the limit over steps (Figures 3, 4, 6 to 10, 12, 13)
bias    cost critic minus rollouts over steps, at visited and at risky states (Figures 2, 5, 11)
time    seconds of training (Figure 13)
bars    return, violation rate and mean excess over the whole of training, which curves hide

Lines and bars are interquartile means over seeds, bands and whiskers their bootstrap intervals. In long runs a point of
a curve is the mean of several iterations.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.analysis.run_table import tabulate
from flashbulb.cost_limits import limit_columns
from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import (
    PANELS,
    Curves,
    algorithms_of,
    choose_colours,
    draw_limits,
    draw_panel,
    gather_curves,
    new_figure,
    save_figure,
)
from flashbulb.storage.run_directory import load_config

COLUMNS = 4  # panels side by side
POINTS = 125  # of a curve; more are only noise
BIAS = {"critic_bias_rollout": "visited states", "critic_bias_rollout_risky": "risky states"}
SUMMARY = {"normalised": "return (1: best label)", "violation_rate": "violation rate", "mean_excess": "mean excess"}
KINDS = ("curves", "bias", "time", "bars", "frontier")

Labels = Mapping[str, str]
Tasks = Mapping[str, dict[str, Curves]]  # task -> label -> curves
TableRows = list[dict[str, str | float]]


def draw_study_figure(kind: str, runs: list[Path], output: Path, labels: Labels | None = None) -> None:
    """Draw a figure of one of the KINDS. `labels` are by the run's name (default: its algorithm)."""
    labels = labels or {}
    match kind:
        case "curves":
            figure = _curves(runs, labels)
        case "bias":
            figure = _bias(runs, labels)
        case "time":
            figure = bars_figure(*tabulate(runs, labels), {"seconds": "seconds of training"})
        case "bars":
            figure = bars_figure(*tabulate(runs, labels), SUMMARY)
        case "frontier":
            figure = _frontier(tabulate(runs, labels)[0], runs)
        case _:
            raise UsageError(f"figure: unknown kind {kind!r}; the known ones are {', '.join(KINDS)}.")
    save_figure(figure, output)


def _curves(runs: list[Path], labels: Labels) -> Any:
    fine = _some(gather_curves(runs, PANELS, labels), "no run has a finished iteration; train for longer first")
    tasks = {task: {label: coarsen(curves) for label, curves in group.items()} for task, group in fine.items()}
    return curves_figure(dict.fromkeys(PANELS, tasks))


def _bias(runs: list[Path], labels: Labels) -> Any:
    found = {name: gather_curves(runs, (name, f"{name}_low", f"{name}_high"), labels) for name in BIAS}
    _some(found["critic_bias_rollout"], "no run has measured its critic's bias; train with --bias-every")
    return curves_figure(found)


def curves_figure(panels: Mapping[str, Tasks]) -> Any:
    """A panel per column and task. `panels` maps the column to its curves, the first having all tasks and labels."""
    first, *_ = panels.values()
    colours = choose_colours(algorithms_of(first))
    figure, grid = _grid(list(first), len(panels))
    for row, (name, found) in enumerate(panels.items()):
        for task in first:
            axes = grid[task][row]
            if group := found.get(task):
                draw_panel(axes, group, name, colours)
                if name == "cost":
                    draw_limits(axes, group)
                if name in BIAS:
                    _shade_single_seeds(axes, group, name, colours)
                    axes.axhline(0.0, color="black", linestyle="--", linewidth=1)
            else:
                axes.set_axis_off()
            axes.set_ylabel(f"$V_C$ minus truth\n{BIAS[name]}" if name in BIAS else PANELS[name])
    note = _note(set().union(*map(_seeds, panels.values())))
    if set(panels) <= set(BIAS):
        note = note.replace("One seed.", "One seed: interval over the states that were measured.")
    dashed = ["cost limit"] * ("cost" in panels) + ["no bias"] * any(name in BIAS for name in panels)
    _finish(figure, colours, note, ", ".join(dashed))
    return figure


def coarsen(curves: Curves, points: int = POINTS) -> Curves:
    """Curves of at most `points`: means of neighbouring iterations, at the steps of the last of them."""
    count = len(curves.steps)
    ends = np.arange(count, 0, -math.ceil(count / points))[::-1]  # the first group takes the remainder
    starts = np.concatenate(([0], ends[:-1]))
    values = {name: np.add.reduceat(column, starts, axis=1) / (ends - starts) for name, column in curves.values.items()}
    return curves._replace(steps=curves.steps[ends - 1], values=values)


def _shade_single_seeds(axes: Any, group: dict[str, Curves], name: str, colours: dict[str, str]) -> None:
    """For a label with one seed, show the interval over the states that were measured; keep it and zero in view."""
    bottom, top = axes.get_ylim()
    for label, curves in group.items():
        if len(curves.values[name]) == 1 and f"{name}_low" in curves.values:
            low, high = (curves.values[name + end][0] for end in ("_low", "_high"))
            axes.fill_between(curves.steps, low, high, color=colours[label], alpha=0.2, linewidth=0)
            bottom, top = min(bottom, low.min()), max(top, high.max())
    margin = 0.05 * (max(top, 0.0) - min(bottom, 0.0))
    axes.set_ylim(min(bottom, -margin), max(top, margin))


def bars_figure(measured: TableRows, statistics: TableRows, panels: dict[str, str]) -> Any:
    """A panel per measure, in it a group of bars per task."""
    trained = {str(row["task"]) for row in measured if row["steps"]}  # rows over all tasks are not drawn
    rows = _some([row for row in statistics if row["task"] in trained], "no run has a finished iteration")
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    colours = choose_colours({str(row["label"]): str(row["algorithm"]) for row in measured if row["steps"]})
    width = max(3.6, 0.6 + 0.2 * len(tasks) * (len(colours) + 1))
    across = len(panels) if width <= 5 else 1
    figure = new_figure(width * across, 3.6 if across > 1 else 2.6 * len(panels) + 0.8)
    grid = figure.subplots(len(panels) // across, across, squeeze=False)
    for axes, (name, words) in zip(grid.flat, panels.items(), strict=True):
        for row in rows:
            place = tasks.index(str(row["task"])) + _offset(list(colours).index(str(row["label"])), len(colours))
            value, low, high = (float(row[name + end]) for end in ("", "_low", "_high"))
            axes.bar(place, value, 0.8 / len(colours), color=colours[str(row["label"])])
            if low < high:
                axes.vlines(place, low, high, color="black", linewidth=1.2)
        tilt = {"rotation": 20, "ha": "right"} if len(tasks) > 2 else {}
        axes.set_xticks(range(len(tasks)), [short_task(task) for task in tasks], **tilt)
        axes.set_ylabel(words)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
        axes.set_axisbelow(True)
    _finish(figure, colours, _note({int(row["runs"]) for row in rows}))
    return figure


def _frontier(measured: TableRows, runs: list[Path]) -> Any:
    """A panel per task: return against cost, both over the last tenth of the run; a point per run, the mean larger."""
    rows = _some([row for row in measured if row["steps"]], "no run has a finished iteration")
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    colours = choose_colours({str(row["label"]): str(row["algorithm"]) for row in rows})
    limits = {load_config(run).env: limit_columns(load_config(run).cost_limit).get("cost", math.nan) for run in runs}
    figure, panels = _grid(tasks, 1)
    for task, (axes,) in panels.items():
        for label, colour in colours.items():
            own = [row for row in rows if (row["task"], row["label"]) == (task, label)]
            cost, returns = ([float(row[name]) for row in own] for name in ("cost", "return"))
            axes.scatter(cost, returns, s=12, color=colour, alpha=0.6, linewidth=0)
            if own:
                axes.scatter(np.mean(cost), np.mean(returns), s=60, color=colour, edgecolor="black", linewidth=0.6)
        axes.axvline(limits[task], color="black", linestyle="--", linewidth=1)
        axes.set(xlabel="episode cost, last tenth", ylabel="episode return, last tenth")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    counts = {(row["task"], row["label"]): 0 for row in rows}
    for row in rows:
        counts[row["task"], row["label"]] += 1
    _finish(figure, colours, f"A small dot per run, the mean large. {_count(set(counts.values()))}.", "cost limit")
    return figure


def _count(seeds: set[int]) -> str:
    low, high = min(seeds), max(seeds)
    return f"{high} seed{'s' * (high > 1)}" if low == high else f"{low} to {high} seeds"


def _offset(index: int, count: int) -> float:
    return 0.8 * ((index + 0.5) / count - 0.5)


def _grid(tasks: list[str], rows: int) -> tuple[Any, dict[str, list[Any]]]:
    """A figure and the panels of each task: one above the other, tasks side by side; one task has them in a row."""
    if len(tasks) == 1:
        figure = new_figure(4.2 * rows, 3.6)
        panels = {tasks[0]: list(figure.subplots(1, rows, squeeze=False)[0])}
    else:
        across = min(len(tasks), COLUMNS)
        down = math.ceil(len(tasks) / across)
        figure = new_figure(max(3.1 * across, 7.5), 2.5 * rows * down + 0.7)
        grid = figure.subplots(rows * down, across, squeeze=False)
        panels = {}
        for index, task in enumerate(tasks):
            top = rows * (index // across)
            panels[task] = list(grid[top : top + rows, index % across])
        for unused in grid[rows * (down - 1) :, (len(tasks) - 1) % across + 1 :].flat:
            unused.set_axis_off()
    for task, axes in panels.items():
        axes[0].set_title(short_task(task), fontsize=11)
    return figure, panels


def _seeds(tasks: Tasks) -> set[int]:
    return {len(values) for group in tasks.values() for curves in group.values() for values in curves.values.values()}


def _finish(figure: Any, colours: dict[str, str], note: str, dashed: str | None = None) -> None:
    """Add one legend for all panels, with a note on what lines and bands are."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=3, label=label) for label, colour in colours.items()]
    if dashed:
        handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1, label=dashed))
    width = figure.get_figwidth()
    legend = figure.legend(
        handles=handles, loc="outside lower center", ncols=max(2, int(width / 1.7)), frameon=False, fontsize=9
    )
    legend.set_title(textwrap.fill(note, int(15 * width)))
    legend.get_title().set(fontsize=7.5, color="0.35", multialignment="center")


def _note(seeds: set[int]) -> str:
    fewest, most = min(seeds), max(seeds)
    if most == 1:
        return "One seed."
    count = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    if most <= 3:
        return f"{count}: mean and range (the bootstrap interval of so few)."
    return f"{count}: interquartile mean and 95 % bootstrap interval."


def short_task(task: str) -> str:
    """A task's name without the prefix and version that all of them share."""
    return re.sub(r"^Safety|-v\d+$", "", task.rpartition(":")[2])


def _some(found: Any, otherwise: str) -> Any:
    if not found:
        raise UsageError(f"figure: {otherwise}.")
    return found
