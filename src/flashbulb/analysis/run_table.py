"""The table of a set of runs: a row of measures per run, and a row of statistics per task and label.

The label of a run is by default its algorithm. If several tasks have runs of every label, each label also has a row for
"all tasks". For that, returns are normalised per task: 0 is the return of the untrained policy (first iteration, mean
over the task's runs) and 1 that of the task's best label, both fixed while seeds are resampled. Costs are not
normalised.
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
from flashbulb.analysis.run_measures import measures
from flashbulb.analysis.statistics import Interval, improvement, iqm, iqm_interval
from flashbulb.config import Config
from flashbulb.cost_limits import limit_text
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.safe_files import write_whole

TableRow = dict[str, str | float]

ALL_TASKS = "all tasks"
# Measures of which a row of statistics has interquartile means; `normalised` is the normalised return.
STATISTICS = (
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
ALL_TASK_STATISTICS = (
    "normalised",
    "cost",
    "violation_rate",
    "mean_excess",
    "cost_rate",
    "violation_rate_late",
    "mean_excess_late",
)
# Measures compared between MICE-X and its base X as a probability of improvement; -1 where less is better.
IMPROVEMENTS = {"return": 1.0, "violation_rate": -1.0, "mean_excess": -1.0}


class SeedGroup(NamedTuple):
    """The runs of one label on one task that have finished an iteration; each measure is an array over seeds."""

    algorithm: str
    cost_limit: str  # as text, which names several
    columns: dict[str, np.ndarray]

    @property
    def seeds(self) -> int:
        return len(self.columns["return"])


SeedGroups = dict[str, dict[str, SeedGroup]]  # task -> label -> runs


def tabulate(runs: list[Path], labels: Mapping[str, str] | None = None) -> tuple[list[TableRow], list[TableRow]]:
    """Rows of measures (one per run) and of statistics, in the order of the runs; `labels` maps run names to labels."""
    measured = [_measure(run, labels or {}) for run in runs]
    several = dict.fromkeys(column for run in runs for column in several_columns(load_config(run)))
    return measured, summarise(measured, tuple(several))


def summarise(measured: list[TableRow], several: tuple[str, ...] = ()) -> list[TableRow]:
    """Rows of statistics from rows of measures; `several` are the measures of each of several costs, if there are."""
    cells = _cells(measured)
    names = STATISTICS + several
    rows = [_row(task, label, {task: group}, names, several) for task, group in cells.items() for label in group]
    every = list(dict.fromkeys(label for group in cells.values() for label in group))
    common = {task: group for task, group in cells.items() if len(group) == len(every)}
    if len(common) > 1:
        rows += [_row(ALL_TASKS, label, common, ALL_TASK_STATISTICS, several) for label in every]
    return rows


def several_columns(config: Config) -> list[str]:
    """The measures of each of several costs."""
    return [f"{measure}_{name}" for name in config.cost_names for measure in ("cost", "violation_rate")]


def _measure(run: Path, labels: Mapping[str, str]) -> TableRow:
    config = load_config(run)
    about: TableRow = {
        "run": run.name,
        "task": config.env,
        "label": labels.get(run.name, config.algorithm),
        "algorithm": config.algorithm,
        "seed": config.seed,
        "cost_limit": limit_text(config.cost_limit) if config.cost_names else config.limit,
    }
    return about | measures(run)


def _cells(measured: list[TableRow]) -> SeedGroups:
    groups: dict[str, dict[str, list[TableRow]]] = {}
    for row in measured:
        if row["steps"]:
            groups.setdefault(str(row["task"]), {}).setdefault(str(row["label"]), []).append(row)
    return {task: _normalise({label: _cell(rows) for label, rows in group.items()}) for task, group in groups.items()}


def _cell(rows: list[TableRow]) -> SeedGroup:
    common = set.intersection(*(set(row) for row in rows))
    numbers = [name for name in rows[0] if name in common and not isinstance(rows[0][name], str)]
    columns = {name: np.array([row[name] for row in rows]) for name in numbers}
    return SeedGroup(str(rows[0]["algorithm"]), str(rows[0]["cost_limit"]), columns)


def _normalise(group: dict[str, SeedGroup]) -> dict[str, SeedGroup]:
    untrained = np.concatenate([cell.columns["return_first"] for cell in group.values()]).mean()
    best = max(iqm(cell.columns["return"]) for cell in group.values())
    width = best - untrained if best > untrained else np.nan  # NaN: no label has improved on the untrained policy
    return {
        label: cell._replace(columns=cell.columns | {"normalised": (cell.columns["return"] - untrained) / width})
        for label, cell in group.items()
    }


def _row(task: str, label: str, cells: SeedGroups, names: tuple[str, ...], several: tuple[str, ...]) -> TableRow:
    """Statistics of a label over the given tasks, and its probabilities of improvement over its base algorithm."""
    mine = [group[label] for group in cells.values()]
    row: TableRow = {
        "task": task,
        "label": label,
        "tasks": len(mine),
        "runs": sum(cell.seeds for cell in mine),
        "unfinished": sum(int((cell.columns["finished"] == 0).sum()) for cell in mine),
    }
    for name in STATISTICS + several:
        known = [cell.columns[name] for cell in mine if name in names and name in cell.columns]
        row |= _columns(name, iqm_interval(known))
    base = _base(label, next(iter(cells.values())))
    theirs = [group[base] for group in cells.values()] if base else []
    row["versus"] = base or ""
    for name, sign in IMPROVEMENTS.items():
        ours = [sign * cell.columns[name] for cell in mine if base]
        row |= _columns(f"better_{name}", improvement(ours, [sign * cell.columns[name] for cell in theirs]))
    return row


def _base(label: str, group: dict[str, SeedGroup]) -> str | None:
    """The label of the same algorithm without intrinsic or constant cost, under the same limit; None if absent.

    Of several variants of it the one with the same words: "cpo, near lidar" for "mice-cpo, near lidar". Otherwise only
    the plain one, as another would differ in more than the cost.
    """
    mine = group[label]
    ours = get_algorithm(mine.algorithm)
    if ours.cost_stream == "extrinsic":
        return None
    bare = dataclasses.replace(ours, summary="", cost_stream="extrinsic", settings={}, plugins=())
    found = {}
    for other, cell in group.items():
        theirs = dataclasses.replace(get_algorithm(cell.algorithm), summary="", settings={}, plugins=())
        if theirs == bare and cell.cost_limit == mine.cost_limit:
            found[other] = cell.algorithm
    alike = [other for other, algorithm in found.items() if other == label.replace(mine.algorithm, algorithm)]
    plain = [other for other, algorithm in found.items() if other == algorithm]
    return next(iter(alike + plain), None)


def _columns(name: str, found: Interval) -> TableRow:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_seeds": found.seeds}


def write_table(directory: Path, runs: list[Path], labels: Mapping[str, str] | None = None) -> None:
    """Write measures.csv and table.csv in full precision, and table.md rounded."""
    write_tables_of(directory, *tabulate(runs, labels))


def write_tables_of(directory: Path, measured: list[TableRow], statistics: list[TableRow]) -> None:
    write_whole(directory / "measures.csv", _csv(measured))
    write_whole(directory / "table.csv", _csv(statistics))
    write_whole(directory / "table.md", _markdown(statistics).encode())


def _csv(rows: list[TableRow]) -> bytes:
    """Rows as CSV; a missing number is an empty field."""
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))  # those of several costs are in some rows only
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if value != value else value for name, value in row.items()})
    return text.getvalue().encode()


class TextTable(NamedTuple):
    """A table of strings."""

    header: list[str]
    rows: list[list[str]]


# Columns of table.md and their headings; empty columns are left out.
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
IMPROVEMENT_HEADINGS = {
    "better_return": "higher return",
    "better_violation_rate": "fewer violations",
    "better_mean_excess": "less excess",
}


def text_tables(statistics: list[TableRow]) -> tuple[TextTable, TextTable]:
    """A table of the statistics, and one of the probabilities of improvement over the base algorithm."""
    present = [name for name in HEADINGS if any(row[f"{name}_seeds"] for row in statistics)]
    main = TextTable(
        ["task", "label", "runs", *(HEADINGS[name] for name in present)],
        [[*_names(row, "task", "label"), _runs(row), *(_text(row, name) for name in present)] for row in statistics],
    )
    better = TextTable(
        ["task", "label", "against", *IMPROVEMENT_HEADINGS.values()],
        [
            [*_names(row, "task", "label", "versus"), *(_text(row, name) for name in IMPROVEMENT_HEADINGS)]
            for row in statistics
            if row["versus"]
        ],
    )
    return main, better


def _names(row: TableRow, *columns: str) -> list[str]:
    return [str(row[name]) for name in columns]


def _text(row: TableRow, name: str) -> str:
    """An estimate and its interval to three digits, with the number of seeds if not all have a value."""
    if name == "return" and row["task"] == ALL_TASKS:
        name = "normalised"
    known = [x for x in (float(row[name + end]) for end in ("", "_low", "_high")) if not np.isnan(x)]
    if not known:
        return "-"
    largest = max(map(abs, known))
    decimals = int(np.clip(2 - np.floor(np.log10(largest)), 0, 4)) if largest else 0
    value, *ends = (f"{x:,.{decimals}f}" for x in known)
    text = f"{value} [{', '.join(ends)}]" if ends else value
    lacking = name in STATISTICS and row[f"{name}_seeds"] != row["runs"]
    return f"{text} ({row[f'{name}_seeds']} of {row['runs']})" if lacking else text


def _runs(row: TableRow) -> str:
    return f"{row['runs']}, {row['unfinished']} unfinished" if row["unfinished"] else str(row["runs"])


def _markdown(statistics: list[TableRow]) -> str:
    main, better = text_tables(statistics)
    parts = [
        "Interquartile mean over seeds (the mean for up to three) and 95 % bootstrap interval, stratified by task. For "
        "two or three seeds the interval is their range, which covers 50 or 75 %, not 95 %. The return over all tasks "
        "is normalised per task: 0 for the untrained policy, 1 for the best label.",
        _lines(main),
    ]
    if better.rows:
        parts += [
            "Probability that a seed is better than a seed of the base algorithm (ties count half), with its interval. "
            "An interval of zero width means that all pairs of these seeds agree.",
            _lines(better),
        ]
    return "\n\n".join(parts) + "\n"


def _lines(table: TextTable) -> str:
    rows = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows)
