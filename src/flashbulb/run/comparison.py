"""Curves of several runs in one figure: seeds of a recipe as mean and confidence band, recipes as colours, tasks as
rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.run.directory import load_config
from flashbulb.run.listing import read_metrics

CONFIDENCE = 0.95
PANELS = (("return", "episode return"), ("cost", "episode cost"))


class Curves(NamedTuple):
    """One recipe on one task: a row per seed, over steps that all of them have reached."""

    steps: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # name -> (seeds, points)
    limits: set[float]


class Band(NamedTuple):
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def band(values: np.ndarray) -> Band:
    """Mean over seeds with Student's confidence interval; one seed has a band of no width."""
    seeds, mean = len(values), values.mean(axis=0)
    if seeds == 1:
        return Band(mean, mean, mean)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1) * values.std(axis=0, ddof=1) / np.sqrt(seeds)
    return Band(mean, mean - half, mean + half)


def gather(paths: list[Path]) -> dict[str, dict[str, Curves]]:
    """task -> recipe -> curves."""
    groups: dict[str, dict[str, list[tuple[Config, dict[str, np.ndarray]]]]] = {}
    for path in paths:
        config, metrics = load_config(path), read_metrics(path)
        if not len(metrics.get("steps", ())):
            raise UsageError(f"run: {path} has no finished iteration to draw; train for longer first.")
        groups.setdefault(config.env, {}).setdefault(config.recipe, []).append((config, metrics))
    return {
        env: {recipe: _align(runs) for recipe, runs in recipes.items()} for env, recipes in groups.items()
    }  # fmt: skip


def _align(runs: list[tuple[Config, dict[str, np.ndarray]]]) -> Curves:
    """Bring seeds to common steps: those of the coarsest run, as far as the shortest goes."""
    columns = [metrics for _, metrics in runs]
    last = min(metrics["steps"][-1] for metrics in columns)
    grids = [metrics["steps"][metrics["steps"] <= last] for metrics in columns]
    steps = min(grids, key=len)
    if not len(steps):
        steps = np.array([last])
    values = {name: np.stack([np.interp(steps, m["steps"], m[name]) for m in columns]) for name, _ in PANELS}
    return Curves(steps, values, {config.cost_limit for config, _ in runs})


def draw_comparison(paths: list[Path], output: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tasks = gather(paths)
    recipes = list(dict.fromkeys(recipe for group in tasks.values() for recipe in group))
    colours = {recipe: f"C{k % 10}" for k, recipe in enumerate(recipes)}
    figure = Figure(figsize=(10, 3.8 * len(tasks)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(tasks), len(PANELS), squeeze=False)
    for axes, (task, group) in zip(rows, tasks.items(), strict=True):
        for panel, (name, label) in zip(axes, PANELS, strict=True):
            _draw_panel(panel, group, name, colours)
            panel.set(ylabel=label, title=task)
        limits = sorted(set().union(*(curves.limits for curves in group.values())))
        for limit in limits:
            axes[1].axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit {limit:g}")
        axes[1].set_ylim(0, max(axes[1].get_ylim()[1], 1.1 * limits[-1]))
        axes[1].legend(frameon=False, fontsize=8)
    try:
        figure.savefig(output, dpi=130)
    except (OSError, ValueError) as error:  # a directory that is not there, or a format that matplotlib does not know
        raise UsageError(f"output: {str(output)!r} cannot be written ({error}).") from None


def _draw_panel(axes: Any, group: dict[str, Curves], name: str, colours: dict[str, str]) -> None:
    for recipe, curves in group.items():
        seeds = len(curves.values[name])
        mean, low, high = band(curves.values[name])
        label = recipe if seeds == 1 else f"{recipe} ({seeds} seeds)"
        axes.plot(curves.steps, mean, color=colours[recipe], label=label)
        if seeds > 1:
            axes.fill_between(curves.steps, low, high, color=colours[recipe], alpha=0.2, linewidth=0)
    # A band over two or three seeds is very wide; the view is that of the seeds themselves.
    lowest = min(float(curves.values[name].min()) for curves in group.values())
    highest = max(float(curves.values[name].max()) for curves in group.values())
    margin = 0.08 * (highest - lowest) or 1.0
    axes.set_ylim(lowest - margin, highest + margin)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_xlabel("environment steps")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
