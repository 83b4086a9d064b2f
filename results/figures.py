"""Curves of return, cost and bias from tables: `python -m results.figures OUTPUT.png LABEL,LABEL... DIRECTORY...`.

A row of panels per task, or for `--tasks PointGoal1,Hopper` alone, from `curves*.csv` and `bias.csv` of all
directories; the limit is dashed. Lines are interquartile means over seeds, as in `flashbulb study`. Where two
directories have the same seed of an algorithm on a task, the first counts. So figures outlive the runs, and one has the
seeds of several sessions.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import numpy as np

from flashbulb.plots.learning_curves import Curves, choose_colours, draw_panel, new_figure, save_figure
from flashbulb.plots.study_figures import coarsen
from results.tables import LIMIT, Row, rows_of, short

PANELS = {
    "return": "episode return",
    "cost": "episode cost",
    "critic_bias_rollout_risky": "$V_C$ minus truth, risky states",
}

Key = tuple[str, str, str]  # task, label, seed
Series = tuple[np.ndarray, np.ndarray]  # steps, values


def main() -> None:
    parser = argparse.ArgumentParser(description="Curves of return, cost and bias from tables.")
    parser.add_argument("output", type=Path)
    parser.add_argument("labels", type=lambda text: text.split(","), help="algorithms, with commas between")
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="only these (default: all)")
    options = parser.parse_args()
    labels = options.labels
    panels = {name: series_of(name, options.directories) for name in PANELS}
    tasks = sorted({task for task, label, _ in panels["return"] if label in labels})
    tasks = [task for task in tasks if not options.tasks or short(task) in options.tasks]
    shown = [name for name, found in panels.items() if any(label in labels for _, label, _ in found)]
    colours = choose_colours({label: label for label in labels})
    figure = new_figure(5 * len(shown), 3.2 * len(tasks))
    grid = figure.subplots(len(tasks), len(shown), squeeze=False)
    for row, task in zip(grid, tasks, strict=True):
        for axes, name in zip(row, shown, strict=True):
            group = {label: curves(label, name, panels[name], task) for label in labels}
            drawn = {label: found for label, found in group.items() if found is not None}
            axes.set(title=short(task), ylabel=PANELS[name])
            if not drawn:
                axes.set_axis_off()
                continue
            draw_panel(axes, drawn, name, colours)
            if name == "cost":
                axes.axhline(LIMIT, color="black", linestyle="--", linewidth=1)
                axes.set_ylim(0, min(axes.get_ylim()[1], 4 * LIMIT))
            elif name != "return":
                axes.axhline(0, color="black", linestyle="--", linewidth=1)
            axes.legend(frameon=False, fontsize=7)
    save_figure(figure, options.output)


def series_of(name: str, places: list[Path]) -> dict[Key, Series]:
    """The column over steps of every run that has it."""
    found: dict[Key, Series] = {}
    for place in places:
        measured = {row["run"]: row for row in rows_of(place / "measures.csv") if "run" in row}
        for path in [place / "bias.csv"] if name.startswith("critic") else sorted(place.glob("curves*.csv")):
            lines = [(key_of(measured.get(row.get("run", ""), row)), row) for row in rows_of(path)]
            for key, same in groupby(lines, lambda line: line[0]):
                points = [(float(row["steps"]), float(row[name])) for _, row in same if row.get(name)]
                if points and key not in found:
                    steps, values = np.array(points).T
                    found[key] = steps, values
    return found


def key_of(row: Row) -> Key:
    return row["task"], row.get("label") or row["recipe"], row["seed"]


def curves(label: str, name: str, series: dict[Key, Series], task: str) -> Curves | None:
    """The seeds of a label at the steps that all of them have."""
    seeds = [found for key, found in series.items() if key[:2] == (task, label)]
    lengths: dict[float, list[Series]] = defaultdict(list)
    for steps, values in seeds:
        lengths[round(steps[-1], -6)].append((steps, values))
    if not lengths:
        return None
    alike = lengths[max(lengths)]  # of runs of several lengths the longest
    steps = min((steps for steps, _ in alike), key=len)
    values = np.stack([np.interp(steps, *one) for one in alike])
    return coarsen(Curves(label, steps, {name: values}, {}))


if __name__ == "__main__":
    main()
