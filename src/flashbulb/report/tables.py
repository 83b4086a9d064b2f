"""What was run, and its numbers as cells of text, of which a page only has to make a table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb import __version__
from flashbulb.errors import UsageError
from flashbulb.report.run_groups import Source, Subject
from flashbulb.studies.table import ALL_TASKS, Row, tabulate

Cell = str | list[str]  # a number, or a number and its interval
NONE = "\N{EN DASH}"


class Column(NamedTuple):
    name: str
    title: str
    digits: int
    scale: float = 1.0
    unit: str = ""


NUMBERS = (
    Column("return", "return", 2),
    Column("normalised", "normalised return", 2),
    Column("cost", "cost", 2),
    Column("violation_rate", "violation rate", 0, 100, " %"),
    Column("mean_excess", "mean excess", 2),
    Column("cost_rate", "cost rate", 4),
    Column("return_feasible", "feasible return", 2),
    Column("bias_unsafe", "bias, unsafe", 2),
    Column("critic_bias_rollout", "true bias", 2),
    Column("critic_bias_rollout_risky", "true bias, risky", 2),
    Column("better_return", "P(better return)", 2),
    Column("better_violation_rate", "P(fewer violations)", 2),
)


def tables(sources: list[tuple[Source, list[Subject]]]) -> dict[str, Any]:
    """Statistics per task and label, and measures per run; columns that nobody has a number for are left out."""
    measured: list[Row] = []
    summed: list[Row] = []
    for _, subjects in sources:
        rows, statistics = tabulate([subject.path for subject in subjects], _by_name(subjects))
        limits = {(s.config.env, s.label): f"{s.config.cost_limit:g}" for s in subjects}
        measured += [row | {"status": subject.status} for row, subject in zip(rows, subjects, strict=True)]
        summed += [row | {"limit": limits.get((str(row["task"]), str(row["label"])), NONE)} for row in statistics]
    return {"summary": _summary(summed), "runs": _runs(measured)}


def _by_name(subjects: list[Subject]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for subject in subjects:
        if labels.setdefault(subject.path.name, subject.label) != subject.label:
            raise UsageError(
                f"runs: two different ones are called {subject.path.name!r}; rename the directory of one of them."
            )
    return labels


def _summary(rows: list[Row]) -> dict[str, Any]:
    columns = [c for c in NUMBERS if any(_known(row.get(c.name)) for row in rows)]
    if not any(row["task"] == ALL_TASKS for row in rows):  # only across tasks does a return need a scale
        columns = [column for column in columns if column.name != "normalised"]
    heads = ["algorithm", "runs", "limit", *(column.title for column in columns)]
    groups: dict[str, list[list[Cell]]] = {}
    for row in rows:
        about: list[Cell] = [str(row[name]) for name in ("label", "runs", "limit")]
        groups.setdefault(str(row["task"]), []).append([*about, *(_estimate(row, column) for column in columns)])
    return {"heads": heads, "texts": 1, "groups": list(groups.items())}


def _runs(rows: list[Row]) -> dict[str, Any]:
    columns = [c for c in NUMBERS if any(_known(row.get(c.name)) for row in rows)]
    heads = ["run", "algorithm", "status", "seed", "steps", "limit", *(column.title for column in columns)]
    groups: dict[str, list[list[Cell]]] = {}
    for row in rows:
        about: list[Cell] = [str(row[name]) for name in ("run", "label", "status", "seed")]
        about += [f"{row['steps']:,.0f}", f"{row['cost_limit']:g}"]
        groups.setdefault(str(row["task"]), []).append([*about, *(_number(row.get(c.name), c) for c in columns)])
    return {"heads": heads, "texts": 3, "groups": list(groups.items())}


def _estimate(row: Row, column: Column) -> Cell:
    value, low, high = (row.get(column.name + end) for end in ("", "_low", "_high"))
    if not (_known(low) and _known(high)):
        return _number(value, column)
    ends = [_number(end, column).removesuffix(column.unit) for end in (low, high)]
    return [_number(value, column), f"[{ends[0]}, {ends[1]}]"]


def _number(value: Any, column: Column) -> str:
    return f"{column.scale * value:.{column.digits}f}{column.unit}" if _known(value) else NONE


def _known(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def facts(sources: list[tuple[Source, list[Subject]]]) -> list[list[str]]:
    """What was run and with what, as pairs of name and value."""
    subjects = [subject for _, own in sources for subject in own]
    configs = [subject.config for subject in subjects]
    abouts = [source.about for source, _ in sources if source.about] or [_provenance(s.path) for s in subjects]
    counts = {state: sum(subject.status == state for subject in subjects) for state in ("running", "interrupted")}
    state = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    pairs = [
        ("runs", f"{len(subjects)}" + (f" ({state})" if state else "")),
        ("algorithms", _list(config.algorithm for config in configs)),
        ("tasks", _list(config.env for config in configs)),
        ("seeds", _list(sorted({config.seed for config in configs}))),
        ("steps", _list(f"{steps:,}" for steps in sorted({config.steps for config in configs}))),
        ("cost limit", _list(f"{limit:g}" for limit in sorted({config.cost_limit for config in configs}))),
        ("command", _list(about.get("command") for about in abouts)),
        ("commit", _list(about.get("commit") for about in abouts)),
        ("machine", _list(about.get("machine") for about in abouts)),
        ("versions", _list(_versions(about) for about in abouts)),
        ("page made by", f"flashbulb {__version__}"),
    ]
    return [[name, value] for name, value in pairs if value]


def _list(values: Any) -> str:
    """Each once; what there is none of is left out."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


def _versions(about: dict[str, Any]) -> str:
    versions = about.get("versions", {})
    named = versions.items() if isinstance(versions, dict) else ()
    return ", ".join(f"{name} {version}" for name, version in named if name in ("flashbulb", "jax", "mujoco"))


def _provenance(run: Path) -> dict[str, Any]:
    """What a run's config.json says beside the configuration, which has been read before."""
    said: dict[str, Any] = json.loads((run / "config.json").read_text())
    return said
