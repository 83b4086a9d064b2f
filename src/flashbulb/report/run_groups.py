"""Which runs a report is about, and which of them are seeds of the same thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.registry import get_algorithm
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_metrics, status
from flashbulb.studies.plan import flat

# Settings that make no other experiment of a run.
_INCIDENTAL = {
    "algorithm",
    "env",
    "seed",
    "threads",
    "vectorise",
    "runs_dir",
    "name",
    "checkpoint_every",
    "keep_checkpoints",
    "bias_every",
    "bias_states",
    "wandb",
    "memory.snapshots",
}


class Source(NamedTuple):
    """A study with what it says about itself, or all runs that belong to none."""

    runs: list[Path]
    about: dict[str, Any]

    @property
    def name(self) -> str:
        return " ".join(str(self.about[key]) for key in ("name", "scale") if key in self.about)


class Subject(NamedTuple):
    """A run. Those of one task and label are seeds of the same thing."""

    path: Path
    config: Config
    label: str
    status: str
    metrics: dict[str, np.ndarray]  # no columns before the first iteration

    @property
    def done(self) -> int:
        """Iterations so far."""
        return len(self.metrics.get("steps", ()))


def find(paths: list[Path]) -> list[Source]:
    """Studies as they were named, then all other runs; each run once."""
    studies, loose = [], Source([], {})
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
            about = _about(path / "study.json")
            place = {name: k for k, name in enumerate(about.get("labels", {}))}
            studies.append(Source(sorted(new, key=lambda run: place.get(run.name, len(place))), about))
        else:
            loose.runs.extend(new)
    return [source for source in (*studies, loose) if source.runs]


def _about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"runs: {path} cannot be read ({error}).") from None
    if not isinstance(about, dict) or not isinstance(about.get("labels", {}), dict):
        raise UsageError(f"runs: {path} is not that of a study.")
    return about


def read(source: Source, with_name: bool) -> list[Subject]:
    """The source's runs; the label says which study it was where there are several."""
    configs = [load_config(path) for path in source.runs]
    given = source.about.get("labels", {})
    suffix = f" ({source.name})" if with_name and source.name else ""
    subjects = []
    for path, config, label in zip(source.runs, configs, _told_apart(configs), strict=True):
        metrics = read_metrics(path)
        state = status(path, config, len(metrics.get("steps", ())))
        subjects.append(Subject(path, config, str(given.get(path.name, label)) + suffix, state, metrics))
    return subjects


def grouped(subjects: list[Subject]) -> dict[str, dict[str, list[Subject]]]:
    """task -> label -> runs by seed."""
    groups: dict[str, dict[str, list[Subject]]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.config.seed):
        groups.setdefault(subject.config.env, {}).setdefault(subject.label, []).append(subject)
    order = list(dict.fromkeys(subject.label for subject in subjects))
    tasks = dict.fromkeys(subject.config.env for subject in subjects)
    return {task: {label: groups[task][label] for label in order if label in groups[task]} for task in tasks}


def ordered(subjects: list[Subject]) -> list[Subject]:
    """Task by task and label by label, both as they first came, then by seed."""
    return [run for labels in grouped(subjects).values() for runs in labels.values() for run in runs]


def _told_apart(configs: list[Config]) -> list[str]:
    """The algorithm, with those settings in which runs of it differ."""
    settings = [_heeded(config) for config in configs]
    labels = []
    for config, own in zip(configs, settings, strict=True):
        others = [other for peer, other in zip(configs, settings, strict=True) if peer.algorithm == config.algorithm]
        differing = [field for field in own if len({repr(other[field]) for other in others}) > 1]
        labels.append(", ".join([config.algorithm, *(f"{field} {own[field]}" for field in differing)]))
    return labels


def _heeded(config: Config) -> dict[str, Any]:
    """Settings that its algorithm makes use of."""
    made_of = get_algorithm(config.algorithm)
    used = {
        "trust_region": made_of.actor == "trust-region",
        "proximal": made_of.actor != "trust-region",
        "pid": made_of.multiplier == "pid",
        "ascent": made_of.multiplier == "ascent",
        "memory": made_of.cost_stream == "memory",
        "balance": made_of.cost_stream == "memory",
        "constant": made_of.cost_stream == "constant",
        "budget": made_of.augmentation != "none",
    }
    return {
        field: value
        for field, value in flat(config).items()
        if field not in _INCIDENTAL and used.get(field.split(".")[0], True)
    }
