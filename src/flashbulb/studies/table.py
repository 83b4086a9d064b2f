"""From runs to numbers to print: a row of measures per run, a row of statistics per task and label.

A label is what a line of a figure is called, by default the algorithm. Where several tasks have runs of every label, a row
per label sums them up as "all tasks". Returns of different tasks are made comparable first: 0 is the return of the
untrained policy (first iteration, mean over the task's runs) and 1 that of the task's best label, both held fixed while
seeds are resampled. Costs count against limits and are compared as they are.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashbulb.algorithms.registry import get_algorithm
from flashbulb.storage.checkpoint import write_whole
from flashbulb.storage.run_directory import load_config
from flashbulb.analysis.run_measures import measures
from flashbulb.analysis.statistics import Interval, improvement, iqm, iqm_interval

Row = dict[str, str | float]

ALL_TASKS = "all tasks"
# Interquartile means of these, the columns of a row of statistics; `normalised` is the return as said above.
MAIN = (
    "return",
    "normalised",
    "return_feasible",
    "return_area",
    "cost",
    "violation_rate",
    "mean_excess",
    "cost_rate",
    "violation_rate_late",
    "mean_excess_late",
    "bias_unsafe",
    "critic_bias_rollout",
    "critic_bias_rollout_risky",
    "true_cost_value_risky",
    "anticipation",
    "seconds",
)
COMPARABLE = (
    "normalised",
    "cost",
    "violation_rate",
    "mean_excess",
    "cost_rate",
    "violation_rate_late",
    "mean_excess_late",
)
# Probability that a seed of MICE-X does better than one of X, by measure; -1 where less is better.
BETTER = {"return": 1.0, "violation_rate": -1.0, "mean_excess": -1.0}


class Cell(NamedTuple):
    """The runs of a label on a task that have finished an iteration, and their measures as columns over seeds."""

    algorithm: str
    cost_limit: float
    columns: dict[str, np.ndarray]

    @property
    def seeds(self) -> int:
        return len(self.columns["return"])


Cells = dict[str, dict[str, Cell]]  # task -> label -> cell


def tabulate(runs: list[Path], labels: Mapping[str, str] | None = None) -> tuple[list[Row], list[Row]]:
    """Rows of measures, one per run, and rows of statistics, in the order of the runs; `labels` by the run's name."""
    measured = [_measure(run, labels or {}) for run in runs]
    cells = _cells(measured)
    rows = [_row(task, label, {task: group}, MAIN) for task, group in cells.items() for label in group]
    every = list(dict.fromkeys(label for group in cells.values() for label in group))
    common = {task: group for task, group in cells.items() if len(group) == len(every)}
    if len(common) > 1:
        rows += [_row(ALL_TASKS, label, common, COMPARABLE) for label in every]
    return measured, rows


def _measure(run: Path, labels: Mapping[str, str]) -> Row:
    config = load_config(run)
    about: Row = {
        "run": run.name,
        "task": config.env,
        "label": labels.get(run.name, config.algorithm),
        "algorithm": config.algorithm,
        "seed": config.seed,
        "cost_limit": config.cost_limit,
    }
    return about | measures(run)


def _cells(measured: list[Row]) -> Cells:
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in measured:
        if row["steps"]:
            groups.setdefault(str(row["task"]), {}).setdefault(str(row["label"]), []).append(row)
    return {task: _normalise({label: _cell(rows) for label, rows in group.items()}) for task, group in groups.items()}


def _cell(rows: list[Row]) -> Cell:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0] if not isinstance(rows[0][name], str)}
    return Cell(str(rows[0]["algorithm"]), float(rows[0]["cost_limit"]), columns)


def _normalise(group: dict[str, Cell]) -> dict[str, Cell]:
    untrained = np.concatenate([cell.columns["return_first"] for cell in group.values()]).mean()
    best = max(iqm(cell.columns["return"]) for cell in group.values())
    width = best - untrained if best > untrained else np.nan  # NaN: nobody has learned anything
    return {
        label: cell._replace(columns=cell.columns | {"normalised": (cell.columns["return"] - untrained) / width})
        for label, cell in group.items()
    }


def _row(task: str, label: str, cells: Cells, names: tuple[str, ...]) -> Row:
    """Statistics of a label over the tasks given: the measures named, and how often it does better than its base."""
    mine = [group[label] for group in cells.values()]
    row: Row = {
        "task": task,
        "label": label,
        "tasks": len(mine),
        "runs": sum(cell.seeds for cell in mine),
        "unfinished": sum(int((cell.columns["finished"] == 0).sum()) for cell in mine),
    }
    for name in MAIN:
        row |= _columns(name, iqm_interval([cell.columns[name] for cell in mine if name in names]))
    base = _base(label, next(iter(cells.values())))
    theirs = [group[base] for group in cells.values()] if base else []
    row["versus"] = base or ""
    for name, sign in BETTER.items():
        ours = [sign * cell.columns[name] for cell in mine if base]
        row |= _columns(f"better_{name}", improvement(ours, [sign * cell.columns[name] for cell in theirs]))
    return row


def _base(label: str, group: dict[str, Cell]) -> str | None:
    """The label of the same learner without memory or constant, under the same limit."""
    mine = group[label]
    ours = get_algorithm(mine.algorithm)
    if ours.cost_stream == "extrinsic":
        return None
    bare = dataclasses.replace(ours, summary="", cost_stream="extrinsic", settings={})
    for other, cell in group.items():
        theirs = dataclasses.replace(get_algorithm(cell.algorithm), summary="", settings={})
        if theirs == bare and cell.cost_limit == mine.cost_limit:
            return other
    return None


def _columns(name: str, found: Interval) -> Row:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_seeds": found.seeds}


def write_table(directory: Path, runs: list[Path], labels: Mapping[str, str] | None = None) -> None:
    """measures.csv and table.csv with every digit, table.md to read."""
    measured, statistics = tabulate(runs, labels)
    write_whole(directory / "measures.csv", _csv(measured))
    write_whole(directory / "table.csv", _csv(statistics))
    write_whole(directory / "table.md", _markdown(statistics).encode())


def _csv(rows: list[Row]) -> bytes:
    """An empty field is a number that there is not."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if value != value else value for name, value in row.items()})
    return text.getvalue().encode()


class Readable(NamedTuple):
    """A table as strings, for Markdown or HTML."""

    header: list[str]
    rows: list[list[str]]


# What of a row of statistics is for reading, under which heading; columns that are empty throughout are left out.
HEADINGS = {
    "return": "return",
    "return_feasible": "feasible return",
    "cost": "episode cost",
    "violation_rate": "violation rate",
    "mean_excess": "mean excess",
    "cost_rate": "cost rate",
    "bias_unsafe": "bias, unsafe states",
    "critic_bias_rollout": "true bias",
    "critic_bias_rollout_risky": "true bias, risky states",
    "seconds": "seconds",
}
BETTER_HEADINGS = {
    "better_return": "higher return",
    "better_violation_rate": "fewer violations",
    "better_mean_excess": "less excess",
}


def readable(statistics: list[Row]) -> tuple[Readable, Readable]:
    """Statistics of each label, and how probably one that has a base does better than it."""
    present = [name for name in HEADINGS if any(row[f"{name}_seeds"] for row in statistics)]
    main = Readable(
        ["task", "label", "runs", *(HEADINGS[name] for name in present)],
        [[*_names(row, "task", "label"), _runs(row), *(_text(row, name) for name in present)] for row in statistics],
    )
    better = Readable(
        ["task", "label", "against", *BETTER_HEADINGS.values()],
        [
            [*_names(row, "task", "label", "versus"), *(_text(row, name) for name in BETTER_HEADINGS)]
            for row in statistics
            if row["versus"]
        ],
    )
    return main, better


def _names(row: Row, *columns: str) -> list[str]:
    return [str(row[name]) for name in columns]


def _text(row: Row, name: str) -> str:
    """Three digits of an estimate and its interval; fewer seeds than the row has are named."""
    if name == "return" and row["task"] == ALL_TASKS:
        name = "normalised"
    known = [x for x in (float(row[name + end]) for end in ("", "_low", "_high")) if not np.isnan(x)]
    if not known:
        return "-"
    largest = max(map(abs, known))
    decimals = int(np.clip(2 - np.floor(np.log10(largest)), 0, 4)) if largest else 0
    value, *ends = (f"{x:,.{decimals}f}" for x in known)
    text = f"{value} [{', '.join(ends)}]" if ends else value
    lacking = name in MAIN and row[f"{name}_seeds"] != row["runs"]
    return f"{text} ({row[f'{name}_seeds']} of {row['runs']})" if lacking else text


def _runs(row: Row) -> str:
    return f"{row['runs']}, {row['unfinished']} unfinished" if row["unfinished"] else str(row["runs"])


def _markdown(statistics: list[Row]) -> str:
    main, better = readable(statistics)
    parts = [
        "Interquartile mean over seeds (with three or fewer, the mean) and the 95 % interval of a bootstrap that is "
        "stratified by task. With two or three seeds the interval is their range, which covers 50 or 75 %, not 95. "
        "The return over all tasks is on a scale from the untrained policy (0) to each task's best label (1).",
        _lines(main),
    ]
    if better.rows:
        parts += [
            "Probability that a seed does better than one of its base, ties as half, with its interval. One of no "
            "width says that all pairs of these seeds agree, not that all pairs of seeds would.",
            _lines(better),
        ]
    return "\n\n".join(parts) + "\n"


def _lines(table: Readable) -> str:
    rows = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows)
