"""The runs in a directory with their status and main numbers, read from their files alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import RunDirectory, load_config


class RunSummary(NamedTuple):
    """A run in one line; numbers are NaN before the first iteration."""

    name: str
    config: Config
    status: str
    steps: float
    returns: float  # mean of the last tenth of its iterations, as the cost
    cost: float
    violation_rate: float
    costs: dict[str, float]  # of each of several costs by its name; empty if there is one


def list_runs(parent: Path) -> tuple[list[RunSummary], list[str]]:
    """The runs in a directory, oldest first, and a sentence for each that is damaged; other files are ignored."""
    try:
        inside = list(parent.iterdir())
    except OSError as error:
        raise UsageError(f"runs: {str(parent)!r} cannot be listed ({error.strerror}); name a directory.") from None
    paths = sorted((path for path in inside if os.path.isfile(path / "config.json")), key=_age)
    listed, left_out = [], []
    for path in paths:
        try:
            listed.append(read_run(path))
        except (UsageError, OSError) as error:
            left_out.append(_left_out(path, error))
    return listed, left_out


def readable_runs(runs: list[Path]) -> tuple[list[Path], list[str]]:
    """Those of some runs that can be read, and a sentence for each other one; an error if there is no readable one."""
    readable, left_out = [], []
    for path in runs:
        try:
            load_config(path)
            read_metrics(path)
            readable.append(path)
        except (UsageError, OSError) as error:
            if len(runs) == 1:
                raise
            left_out.append(_left_out(path, error))
    if runs and not readable:
        raise UsageError(f"runs: none of the {len(runs)} can be read; the first: {left_out[0]}")
    return readable, left_out


def _left_out(run: Path, error: Exception) -> str:
    return f"{run} is left out: {' '.join(str(error).split()).removeprefix('run: ')}"


def repeated_runs(keys: Mapping[Path, tuple[str, str, int]]) -> dict[Path, str]:
    """For runs with their label, task and seed: those that repeat an earlier one, with a sentence that says so.

    A seed determines a run, so that a second run, or a copy, with the same seed is no further sample.
    """
    first: dict[tuple[str, str, int], Path] = {}
    repeats = {run: first.setdefault(key, run) for run, key in keys.items()}
    return {
        run: f"{run} is left out: it has the settings and the seed of {earlier}, so it is no other sample."
        for run, earlier in repeats.items()
        if run != earlier
    }


def read_run(path: Path) -> RunSummary:
    config = load_config(path)
    metrics = read_metrics(path)
    done = max(map(len, metrics.values()), default=0)
    if not done:
        return RunSummary(path.name, config, status(path, config, 0), 0, np.nan, np.nan, np.nan, {})
    several = {name: f"cost_{name}" for name in config.cost_names}
    for name in ("steps", "return", "cost", "violation_rate", *several.values()):
        if name not in metrics:
            raise UsageError(f"run: {path / 'metrics.csv'} has no column {name!r}, so it is no run's.")
    returns, cost = last_tenth(metrics["return"]).mean(), last_tenth(metrics["cost"]).mean()
    rate = metrics["violation_rate"][-1]
    costs = {name: float(last_tenth(metrics[column]).mean()) for name, column in several.items()}
    return RunSummary(path.name, config, status(path, config, done), metrics["steps"][-1], returns, cost, rate, costs)


def last_tenth(column: np.ndarray) -> np.ndarray:
    """The values of the last tenth of the iterations, of one at least: what "at the end of a run" means."""
    return column[-max(1, len(column) // 10) :]


def read_metrics(path: Path) -> dict[str, np.ndarray]:
    """Columns of the run's metrics; none where there is no iteration yet."""
    return read_columns(path / "metrics.csv")


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Columns of a CSV file of a run; none where there is no such file."""
    try:
        return read_csv(path)
    except FileNotFoundError:
        return {}
    except UsageError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"run: {path} cannot be read ({error}).") from None


def status(path: Path, config: Config, iterations: int) -> str:
    """Running while a process holds the lock, otherwise finished or interrupted."""
    if RunDirectory(path).is_locked():
        return "running"
    return "finished" if iterations >= config.iterations else "interrupted"


def _age(path: Path) -> tuple[float, str]:
    return (path / "config.json").stat().st_mtime, path.name
