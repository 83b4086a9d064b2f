"""What runs there are and how each is doing, read from their directories alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import RunDirectory, load_config


class Listed(NamedTuple):
    """A run in one line; numbers are nan before the first iteration."""

    name: str
    config: Config
    status: str
    steps: float
    returns: float  # mean of the last tenth of its iterations, as the cost
    cost: float
    violation_rate: float


def list_runs(parent: Path) -> list[Listed]:
    """The runs in a directory, oldest first; other things in it are passed over."""
    try:
        inside = list(parent.iterdir())
    except OSError as error:
        raise UsageError(f"runs: {str(parent)!r} cannot be listed ({error.strerror}); name a directory.") from None
    paths = sorted((path for path in inside if os.path.isfile(path / "config.json")), key=_age)
    return [read_run(path) for path in paths]


def read_run(path: Path) -> Listed:
    config = load_config(path)
    metrics = read_metrics(path)
    done = len(metrics.get("steps", ()))
    if not done:
        return Listed(path.name, config, status(path, config, 0), 0, np.nan, np.nan, np.nan)
    tail = max(1, done // 10)
    returns, cost = metrics["return"][-tail:].mean(), metrics["cost"][-tail:].mean()
    rate = metrics["violation_rate"][-1]
    return Listed(path.name, config, status(path, config, done), metrics["steps"][-1], returns, cost, rate)


def read_metrics(path: Path) -> dict[str, np.ndarray]:
    """Columns of the run's metrics; none where there is no iteration yet."""
    return read_columns(path / "metrics.csv")


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Columns of a CSV file of a run; none where there is no such file."""
    try:
        return read_csv(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:  # damage
        raise UsageError(f"run: {path} cannot be read ({error}).") from None


def status(path: Path, config: Config, iterations: int) -> str:
    """Running while a process holds its lock; when none does it is finished or was interrupted."""
    if RunDirectory(path).is_locked():
        return "running"
    return "finished" if iterations >= config.iterations else "interrupted"


def _age(path: Path) -> tuple[float, str]:
    return (path / "config.json").stat().st_mtime, path.name
