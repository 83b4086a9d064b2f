"""The runs in a directory with their status and main numbers, read from their files alone."""

from __future__ import annotations

import os
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


def list_runs(parent: Path) -> list[RunSummary]:
    """The runs in a directory, oldest first; other files and directories are ignored."""
    try:
        inside = list(parent.iterdir())
    except OSError as error:
        raise UsageError(f"runs: {str(parent)!r} cannot be listed ({error.strerror}); name a directory.") from None
    paths = sorted((path for path in inside if os.path.isfile(path / "config.json")), key=_age)
    return [read_run(path) for path in paths]


def read_run(path: Path) -> RunSummary:
    config = load_config(path)
    metrics = read_metrics(path)
    done = max(map(len, metrics.values()), default=0)
    if not done:
        return RunSummary(path.name, config, status(path, config, 0), 0, np.nan, np.nan, np.nan)
    for name in ("steps", "return", "cost", "violation_rate"):
        if name not in metrics:
            raise UsageError(f"run: {path / 'metrics.csv'} has no column {name!r}, so it is no run's.")
    returns, cost = last_tenth(metrics["return"]).mean(), last_tenth(metrics["cost"]).mean()
    rate = metrics["violation_rate"][-1]
    return RunSummary(path.name, config, status(path, config, done), metrics["steps"][-1], returns, cost, rate)


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
