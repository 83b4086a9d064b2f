"""The runs of a report, grouped by task and label; the runs of a group differ in their seed only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flashbulb.analysis.experiment import distinct_labels
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_metrics, readable_runs, repeated_runs, status
from flashbulb.storage.safe_files import read_json


class RunSource(NamedTuple):
    """A study with the content of its study.json, or all runs that belong to no study."""

    runs: list[Path]
    study: dict[str, Any]

    @property
    def name(self) -> str:
        return " ".join(str(self.study[key]) for key in ("name", "scale") if key in self.study)


class ReportRun(NamedTuple):
    """A run with its label and metrics."""

    path: Path
    config: Config
    label: str
    status: str
    metrics: dict[str, np.ndarray]  # empty before the first iteration

    @property
    def done(self) -> int:
        """Finished iterations."""
        return len(self.metrics.get("steps", ()))


RunGroups = dict[str, dict[str, list[ReportRun]]]  # task -> label -> runs


def find_sources(paths: list[Path]) -> list[RunSource]:
    """The studies in the order given, then all other runs; each run occurs once."""
    studies, others = [], RunSource([], {})
    seen: set[Path] = set()
    for path in paths:
        is_run = (path / "config.json").is_file()
        inside = path / "runs" if (path / "runs").is_dir() else path
        found = [path] if is_run else sorted(run.parent for run in inside.glob("*/config.json"))
        if not found:
            raise UsageError(f"runs: {str(path)!r} is not allowed; it must be a run, a study or a directory of runs.")
        new = [run for run in found if run.resolve() not in seen]
        seen |= {run.resolve() for run in new}
        if (path / "study.json").is_file():
            study = _read_study(path / "study.json")
            order = {name: k for k, name in enumerate(study.get("labels", {}))}
            studies.append(RunSource(sorted(new, key=lambda run: order.get(run.name, len(order))), study))
        else:
            others.runs.extend(new)
    return [source for source in (*studies, others) if source.runs]


def drop_damaged(sources: list[RunSource]) -> tuple[list[RunSource], list[str]]:
    """The sources without the runs that cannot be read, and a sentence for each of those."""
    readable, left_out = readable_runs([run for source in sources for run in source.runs])
    kept = [source._replace(runs=[run for run in source.runs if run in readable]) for source in sources]
    return [source for source in kept if source.runs], left_out


def drop_repeated(
    sources: list[tuple[RunSource, list[ReportRun]]],
) -> tuple[list[tuple[RunSource, list[ReportRun]]], list[str]]:
    """The sources without runs that have the settings and the seed of another, and a sentence for each of those."""
    runs = [run for _, own in sources for run in own]
    repeated = repeated_runs({run.path: (run.label, run.config.env, run.config.seed) for run in runs})
    kept = [(source, [run for run in own if run.path not in repeated]) for source, own in sources]
    return [(source, own) for source, own in kept if own], list(repeated.values())


def _read_study(path: Path) -> dict[str, Any]:
    try:
        study = read_json(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"runs: {path} cannot be read ({error}).") from None
    if not isinstance(study, dict) or not isinstance(study.get("labels", {}), dict):
        raise UsageError(f"runs: {path} is not the study.json of a study.")
    return study


def read_source(source: RunSource, with_name: bool) -> list[ReportRun]:
    """The runs of a source; `with_name` adds the name of the study to the labels."""
    configs = [load_config(path) for path in source.runs]
    given = source.study.get("labels", {})
    suffix = f" ({source.name})" if with_name and source.name else ""
    runs = []
    for path, config, label in zip(source.runs, configs, distinct_labels(configs), strict=True):
        metrics = read_metrics(path)
        state = status(path, config, len(metrics.get("steps", ())))
        runs.append(ReportRun(path, config, str(given.get(path.name, label)) + suffix, state, metrics))
    return runs


def group_runs(runs: list[ReportRun]) -> RunGroups:
    """Groups in the order in which tasks and labels first occur; the runs of a group are sorted by seed."""
    groups: RunGroups = {}
    for run in sorted(runs, key=lambda run: run.config.seed):
        groups.setdefault(run.config.env, {}).setdefault(run.label, []).append(run)
    order = list(dict.fromkeys(run.label for run in runs))
    tasks = dict.fromkeys(run.config.env for run in runs)
    return {task: {label: groups[task][label] for label in order if label in groups[task]} for task in tasks}


def sort_runs(runs: list[ReportRun]) -> list[ReportRun]:
    """By task and label, both in the order in which they first occur, then by seed."""
    return [run for labels in group_runs(runs).values() for group in labels.values() for run in group]
