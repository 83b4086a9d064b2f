"""Figures from the tables of all directories: `python -m results.figures KIND OUTPUT.png LABEL,LABEL... TASK:STEPS...`.

curves  return, cost and, where it was measured, the cost critic's bias at risky states, tasks side by side
bars    return, violation rate and mean excess over the whole of training

They are drawn as `flashbulb study` draws those of one study. So figures outlive the runs, and one has the seeds of
several sessions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from flashbulb.analysis.run_table import summarise
from flashbulb.plots.learning_curves import Curves, save_figure
from flashbulb.plots.study_figures import SUMMARY, bars_figure, coarsen, curves_figure
from results.add_runs import typed
from results.tables import Cell, Row, curve, gather, number

COLUMNS = ("return", "cost", "critic_bias_rollout_risky")


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="Figures from the tables of all directories.")
    parser.add_argument("kind", choices=("curves", "bars"))
    parser.add_argument("output", type=Path)
    parser.add_argument("labels", type=lambda text: text.split(","), help="algorithms, with commas between")
    parser.add_argument("places", nargs="+", help="TASK:STEPS")
    parser.add_argument("--columns", type=lambda text: text.split(","), default=COLUMNS, help="of the curves")
    options = parser.parse_args(arguments or None)
    runs = gather()
    groups: dict[str, dict[str, list[Row]]] = {}
    for task, _, steps in (place.partition(":") for place in options.places):
        cells = {label: runs.get(Cell(task, label, int(float(steps))), {}) for label in options.labels}
        groups[task] = {label: [*seeds.values()] for label, seeds in cells.items() if seeds}
    if options.kind == "bars":
        rows = [typed(row) for group in groups.values() for seeds in group.values() for row in seeds]
        figure = bars_figure(rows, summarise(rows), SUMMARY)
    else:
        panels = {}
        for name in options.columns:
            found = {task: curves_of(group, name) for task, group in groups.items()}
            if any(found.values()):
                panels[name] = found
        figure = curves_figure(panels)
    save_figure(figure, options.output)


def curves_of(group: dict[str, list[Row]], name: str) -> dict[str, Curves]:
    """label -> the column over steps of the runs that have it, at the steps of the coarsest of them."""
    drawn = {}
    for label, runs in group.items():
        seeds = [found for run in runs if (found := curve(run, name)).size]
        if seeds:
            steps = min((steps for steps, _ in seeds), key=len)
            values = np.stack([np.interp(steps, *one) for one in seeds])
            limits = {"cost": {number(run, "cost_limit") for run in runs}}
            drawn[label] = coarsen(Curves(runs[0]["algorithm"], steps, {name: values}, limits))
    return drawn


if __name__ == "__main__":
    main()
