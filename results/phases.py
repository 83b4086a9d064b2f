"""How an effect changes over a run: `python -m results.phases LABEL,LABEL... TASK:STEPS`.

A row per phase of the run. A cell has the share of iterations above the limit, the mean excess and the mean return of
the phase, means over seeds.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from results.tables import Cell, Row, curve, gather, number, print_head, print_row

PHASES = (0.0, 0.1, 0.3, 0.6, 1.0)


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="How an effect changes over a run.")
    parser.add_argument("labels", type=lambda text: text.split(","))
    parser.add_argument("place", help="TASK:STEPS")
    options = parser.parse_args(arguments or None)
    task, _, steps = options.place.partition(":")
    runs = gather()
    seeds = {label: [*runs[Cell(task, label, int(float(steps)))].values()] for label in options.labels}
    print_head("million steps", *(f"`{label}`, n = {len(rows)}" for label, rows in seeds.items()))
    for begin, end in itertools.pairwise(PHASES):
        cells = [text_of(rows, begin, end) for rows in seeds.values()]
        print_row(f"{begin * float(steps) / 1e6:g} to {end * float(steps) / 1e6:g}", *cells)


def text_of(runs: list[Row], begin: float, end: float) -> str:
    found = np.mean([phase(run, begin, end) for run in runs], axis=0)
    return f"{100 * found[0]:.0f} %, {found[1]:.1f}, {found[2]:.1f}"


def phase(run: Row, begin: float, end: float) -> tuple[float, float, float]:
    """Violations, excess and return of a run between two shares of its iterations."""
    cost, returns = curve(run, "cost")[1], curve(run, "return")[1]
    rows = slice(round(begin * len(cost)), round(end * len(cost)))
    excess = cost[rows] - number(run, "cost_limit")
    return float((excess > 0).mean()), float(np.maximum(excess, 0).mean()), float(returns[rows].mean())


if __name__ == "__main__":
    main()
