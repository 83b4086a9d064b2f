"""What a run reports in each iteration, and the files it goes to."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flashbulb.run.collect import Batch, InFlight

Row = dict[str, float | int]


class Totals(NamedTuple):
    """Sums over the run so far, behind violation rate, mean excess and cost rate (METHOD.md, section 7)."""

    iterations: np.ndarray
    steps: np.ndarray
    episodes: np.ndarray
    cost: np.ndarray
    violations: np.ndarray
    excess: np.ndarray

    @classmethod
    def start(cls) -> Totals:
        return cls(*(np.zeros((), np.int64) for _ in range(3)), *(np.zeros(()) for _ in range(3)))

    def add(self, batch: Batch, episode_cost: float, limit: float) -> Totals:
        return Totals(
            self.iterations + 1,
            self.steps + batch.costs.size,
            self.episodes + len(batch.finished.costs),
            self.cost + batch.costs.sum(dtype=np.float64),
            self.violations + float(episode_cost > limit),
            self.excess + max(episode_cost - limit, 0.0),
        )


class EpisodeMeans(NamedTuple):
    """Means over the episodes that finished in this batch, and over no older ones."""

    returns: float
    cost: float
    length: float
    estimated: bool  # none finished: extrapolated from the running episodes


def episode_means(batch: Batch, flight: InFlight, max_episode_steps: int) -> EpisodeMeans:
    done = batch.finished
    if len(done.costs):
        return EpisodeMeans(done.returns.mean(), done.costs.mean(), float(done.lengths.mean()), False)
    scale = max_episode_steps / flight.lengths.sum()
    return EpisodeMeans(flight.returns.sum() * scale, flight.costs.sum() * scale, float(max_episode_steps), True)


class CsvLog:
    """Appends rows; every row is on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, rows: list[Row]) -> None:
        if not rows:
            return
        fresh = not self.path.exists() or self.path.stat().st_size == 0
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            if fresh:
                writer.writeheader()
            writer.writerows(rows)


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of a metrics file."""
    with Path(path).open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        names = reader.fieldnames or []
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


def episode_rows(batch: Batch, iteration: int, steps_before: int) -> list[Row]:
    members = batch.costs.shape[1]
    return [
        {
            "iteration": iteration,
            "steps": steps_before + (int(step) + 1) * members,
            "member": int(member),
            "return": float(returns),
            "cost": float(cost),
            "length": int(length),
        }
        for step, member, returns, cost, length in zip(*batch.finished, strict=True)
    ]


class TensorBoard:
    """The CSV's names and numbers as TensorBoard events, environment steps on the x axis."""

    def __init__(self, directory: Path) -> None:
        from tensorboardX import SummaryWriter

        self._writer: Any = SummaryWriter(logdir=str(directory), flush_secs=10, write_to_disk=True)

    def write(self, row: Row, steps: int) -> None:
        for name, value in row.items():
            if name not in ("iteration", "steps") and np.isfinite(value):
                self._writer.add_scalar(name, value, steps)

    def close(self) -> None:
        self._writer.close()
