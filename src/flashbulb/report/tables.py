"""The tables of the page as cells of text: what was run, statistics by task and label, and measures by run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb import __version__
from flashbulb.analysis.run_table import ALL_TASKS, TableRow, tabulate
from flashbulb.config import Config
from flashbulb.cost_limits import CostLimit, limit_columns, limit_text
from flashbulb.errors import UsageError
from flashbulb.report.run_groups import ReportRun, RunSource
from flashbulb.report.verdict import RANGE_SEEDS, verdicts

CellText = str | list[str]  # a number, or a number and its interval
MISSING = "\N{EN DASH}"


class NumberColumn(NamedTuple):
    name: str
    title: str
    digits: int
    scale: float = 1.0
    unit: str = ""


NUMBERS = (
    NumberColumn("return", "return", 2),
    NumberColumn("normalised", "normalised return", 2),
    NumberColumn("cost", "cost", 2),
    NumberColumn("violation_rate", "violation rate", 0, 100, " %"),
    NumberColumn("mean_excess", "mean excess", 2),
    NumberColumn("cost_rate", "cost rate", 4),
    NumberColumn("return_feasible", "feasible return", 2),
    NumberColumn("bias_unsafe", "bias, unsafe", 2),
    NumberColumn("critic_bias_rollout", "true bias", 2),
    NumberColumn("critic_bias_rollout_risky", "true bias, risky", 2),
    NumberColumn("better_return", "P(better return)", 2),
    NumberColumn("better_violation_rate", "P(fewer violations)", 2),
)


def result_tables(sources: list[tuple[RunSource, list[ReportRun]]]) -> dict[str, Any]:
    """Statistics by task and label, and measures by run; empty columns are left out."""
    measured: list[TableRow] = []
    summarised: list[TableRow] = []
    limits: dict[tuple[str, str], CostLimit] = {}
    for _, runs in sources:
        rows, statistics = tabulate([run.path for run in runs], _labels_by_name(runs))
        own = {(run.config.env, run.label): run.config.cost_limit for run in runs}
        limits |= own
        measured += [row | {"status": run.status} for row, run in zip(rows, runs, strict=True)]
        for row in statistics:
            limit = own.get((str(row["task"]), str(row["label"])))
            summarised.append(row | {"limit": MISSING if limit is None else limit_text(limit)})
    numbers = _with_each_cost(sorted({name for _, runs in sources for run in runs for name in run.config.cost_names}))
    return {
        "verdicts": verdicts(summarised, limits),
        "intervals": interval_words([int(row["runs"]) // int(row["tasks"]) for row in summarised]),
        "summary": _summary(summarised, numbers),
        "runs": _runs(measured, numbers),
    }


def interval_words(seeds: list[int]) -> str:
    """What the brackets are: with two or three seeds a bootstrap interval is no more than their range."""
    several = [count for count in seeds if count > 1]
    few, many = (any(count <= RANGE_SEEDS for count in several), any(count > RANGE_SEEDS for count in several))
    if few and many:
        return "with 95 % bootstrap intervals, and of two or three seeds with their range"
    if few:
        return "with the range of the seeds, which are too few for an interval"
    return "with 95 % bootstrap intervals" if many else "one seed each, so without an interval"


def _with_each_cost(names: list[str]) -> list[NumberColumn]:
    """The columns of numbers, with those of each of several costs after that of all."""
    columns = []
    for column in NUMBERS:
        columns.append(column)
        if column.name in ("cost", "violation_rate"):
            columns += [
                column._replace(name=f"{column.name}_{cost}", title=f"{column.title}: {cost}") for cost in names
            ]
    return columns


def _labels_by_name(runs: list[ReportRun]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for run in runs:
        if labels.setdefault(run.path.name, run.label) != run.label:
            raise UsageError(f"runs: two different ones are called {run.path.name!r}; rename one of the directories.")
    return labels


def _summary(rows: list[TableRow], numbers: list[NumberColumn]) -> dict[str, Any]:
    columns = [c for c in numbers if any(_known(row.get(c.name)) for row in rows)]
    if not any(row["task"] == ALL_TASKS for row in rows):  # it is needed across tasks only
        columns = [column for column in columns if column.name != "normalised"]
    headings = ["algorithm", "runs", "limit", *(column.title for column in columns)]
    groups: dict[str, list[list[CellText]]] = {}
    for row in rows:
        names: list[CellText] = [str(row[name]) for name in ("label", "runs", "limit")]
        groups.setdefault(str(row["task"]), []).append([*names, *(_estimate(row, column) for column in columns)])
    return {"headings": headings, "texts": 1, "groups": list(groups.items())}


def _runs(rows: list[TableRow], numbers: list[NumberColumn]) -> dict[str, Any]:
    columns = [c for c in numbers if any(_known(row.get(c.name)) for row in rows)]
    headings = ["run", "algorithm", "status", "seed", "steps", "limit", *(column.title for column in columns)]
    groups: dict[str, list[list[CellText]]] = {}
    for row in rows:
        names: list[CellText] = [str(row[name]) for name in ("run", "label", "status", "seed")]
        names += [f"{row['steps']:,.0f}", _limit(row["cost_limit"])]
        groups.setdefault(str(row["task"]), []).append([*names, *(_number(row.get(c.name), c) for c in columns)])
    return {"headings": headings, "texts": 3, "groups": list(groups.items())}


def _estimate(row: TableRow, column: NumberColumn) -> CellText:
    value, low, high = (row.get(column.name + end) for end in ("", "_low", "_high"))
    few = column.name.startswith("better_") and int(row["runs"]) <= RANGE_SEEDS * int(row["tasks"])
    if few or not (_known(low) and _known(high)):  # a probability from two or three seeds has no interval
        return _number(value, column)
    ends = [_number(end, column).removesuffix(column.unit) for end in (low, high)]
    return [_number(value, column), f"[{ends[0]}, {ends[1]}]"]


def _number(value: Any, column: NumberColumn) -> str:
    return f"{column.scale * value:.{column.digits}f}{column.unit}" if _known(value) else MISSING


def _known(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def run_facts(sources: list[tuple[RunSource, list[ReportRun]]]) -> list[list[str]]:
    """What was run, and with which versions on which machine, as pairs of name and value."""
    runs = [run for _, own in sources for run in own]
    configs = [run.config for run in runs]
    origins = [source.study for source, _ in sources if source.study] or [_provenance(run.path) for run in runs]
    counts = {state: sum(run.status == state for run in runs) for state in ("running", "interrupted")}
    state = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    pairs = [
        ("runs", f"{len(runs)}" + (f" ({state})" if state else "")),
        ("algorithms", _list(config.algorithm for config in configs)),
        ("tasks", _list(config.env for config in configs)),
        ("seeds", _list(sorted({config.seed for config in configs}))),
        ("steps", _list(f"{steps:,}" for steps in sorted({config.steps for config in configs}))),
        ("cost limit", _list(limit_text(config.cost_limit) for config in sorted(configs, key=_by_limit))),
        ("command", _list(origin.get("command") for origin in origins)),
        ("commit", _list(origin.get("commit") for origin in origins)),
        ("machine", _list(origin.get("machine") for origin in origins)),
        ("versions", _list(_versions(origin) for origin in origins)),
        ("page made by", f"flashbulb {__version__}"),
    ]
    return [[name, value] for name, value in pairs if value]


def _by_limit(config: Config) -> tuple[float, ...]:
    return tuple(limit_columns(config.cost_limit).values())


def _limit(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _list(values: Any) -> str:
    """The distinct values, separated by commas; missing ones are left out."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


def _versions(origin: dict[str, Any]) -> str:
    versions = origin.get("versions", {})
    named = versions.items() if isinstance(versions, dict) else ()
    return ", ".join(f"{name} {version}" for name, version in named if name in ("flashbulb", "jax", "mujoco"))


def _provenance(run: Path) -> dict[str, Any]:
    """The content of config.json, which has versions and machine beside the settings."""
    content: dict[str, Any] = json.loads((run / "config.json").read_text())
    return content
