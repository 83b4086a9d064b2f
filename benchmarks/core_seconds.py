"""Processor time of training, which is what a study costs: `python -m benchmarks.core_seconds`.

Core-seconds per million steps, by algorithm and task: the processor time of all threads of a run on one core, over its
iterations after the first two (which compile). Processor time depends less on what else the machine does than a
rate does, but caches and clock are shared, so a busy machine still adds to it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

import flashbulb
from flashbulb.training.callbacks import Callback

TASKS = (
    "SafetyPointGoal1-v0",
    "SafetyPointCircle1-v0",
    "SafetyCarGoal1-v0",
    "SafetyCarCircle1-v0",
    "SafetyHalfCheetahVelocity-v1",
    "SafetyHopperVelocity-v1",
    "SafetyAntVelocity-v1",
    "SafetyHumanoidVelocity-v1",
)
ALGORITHMS = ("mice-salient", "trpo-pid", "cpo", "mice-cpo", "pid-lag", "mice-pid", "cup", "saute")
COMPILING = 2  # iterations


class ProcessorTime(Callback):
    """Processor seconds and steps of every iteration."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def on_iteration_end(self, run: Any, metrics: Mapping[str, float]) -> None:
        self.marks.append((time.process_time(), float(metrics["steps"])))


def core_seconds(algorithm: str, task: str, iterations: int) -> float:
    """Core-seconds per million steps: the median over iterations."""
    timer = ProcessorTime()
    with tempfile.TemporaryDirectory() as place:
        steps = 20_000 * (COMPILING + iterations)
        flashbulb.train(algorithm, task, steps=steps, threads=1, runs_dir=place, callbacks=[timer], verbose=False)
    pairs = zip(timer.marks[COMPILING - 1 :], timer.marks[COMPILING:], strict=False)
    return statistics.median((after[0] - before[0]) / (after[1] - before[1]) * 1e6 for before, after in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument("--iterations", type=int, default=5, help="measured iterations of 20,000 steps (default: 5)")
    arguments = parser.parse_args()
    table = Table("core-seconds per million steps", *(task.removeprefix("Safety") for task in arguments.tasks), "sum")
    for algorithm in arguments.algorithms:
        found = [core_seconds(algorithm, task, arguments.iterations) for task in arguments.tasks]
        table.add_row(algorithm, *(f"{seconds:.0f}" for seconds in found), f"{sum(found):.0f}")
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
