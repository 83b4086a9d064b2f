"""The cost critic against rollouts: `python -m results.bias_table DIRECTORY...`.

A row per task and label from `bias.csv` and `measures.csv` of all directories: V_C minus the true cost to go, with the
truth in brackets, at visited, initial and risky states, and R^2, the share of the variance of the costs to go in fresh
episodes that V_C explains. All are means over the measurements in the second half of a run, then over seeds; the range
of several seeds follows.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from results.tables import Row, print_row, rows_of, short

STATES = {"": "visited states", "_initial": "initial states", "_risky": "risky states"}


def main(*places: str) -> None:
    cells: dict[tuple[str, str], dict[int, list[Row]]] = defaultdict(dict)
    for place in map(Path, places):
        measured = {row["run"]: row for row in rows_of(place / "measures.csv") if "run" in row}
        runs: dict[str, list[Row]] = defaultdict(list)
        for row in rows_of(place / "bias.csv"):
            runs[row["run"]].append(row)
        for run, rows in runs.items():
            about = measured[run]
            late = [row for row in rows if float(row["steps"]) > float(about["steps"]) / 2]
            cells[about["task"], about["label"]].setdefault(int(about["seed"]), late)
    print_row("task", "algorithm", "seeds", *STATES.values(), "R²")
    print_row(*["---"] * (4 + len(STATES)))
    for (task, label), seeds in sorted(cells.items()):
        found = [bias(seeds, state) for state in STATES]
        print_row(short(task), label, str(len(seeds)), *found, spread(means(seeds, "critic_r2")))


def bias(seeds: dict[int, list[Row]], state: str) -> str:
    truth = np.nanmean(means(seeds, f"true_cost_value{state}"))
    return f"{spread(means(seeds, f'critic_bias_rollout{state}'))} ({truth:.1f})"


def means(seeds: dict[int, list[Row]], name: str) -> np.ndarray:
    """The mean of each seed, of those that have the measure."""
    values = [[float(row[name]) for row in rows if row.get(name)] for rows in seeds.values()]
    return np.array([np.mean(own) for own in values if own])


def spread(values: np.ndarray) -> str:
    if not len(values):
        return "-"
    text = f"{values.mean():+.2f}"
    return text if len(values) == 1 else f"{text} [{values.min():+.2f}, {values.max():+.2f}]"


if __name__ == "__main__":
    main(*sys.argv[1:])
