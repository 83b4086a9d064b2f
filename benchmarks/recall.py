"""What a large memory costs: `python -m benchmarks.recall`.

A run of `mice-cpo` on SafetyPointGoal1 that forgets nothing, until it holds 20,000 states and for some time longer. Its
recalls (nearest neighbours and intrinsic cost of an iteration's samples) are timed where they happen.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.memory.cost_streams import MemoryCost
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import train

TASK = "SafetyPointGoal1-v0"
LARGEST = 20_000
SIZES = ((500, 1_500), (4_000, 6_000), (9_000, 11_000), (LARGEST, LARGEST))


def measure(iterations: int, threads: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States held, seconds of the recall and of the whole, for each iteration."""
    taken, recall = [], MemoryCost.add_intrinsic_cost

    def timed(self: MemoryCost, *args: Any) -> Any:
        begun = time.perf_counter()
        result = recall(self, *args)
        taken.append(time.perf_counter() - begun)
        return result

    with tempfile.TemporaryDirectory() as runs, mock.patch.object(MemoryCost, "add_intrinsic_cost", timed):
        keeping = {"window": iterations, "max_states": LARGEST}
        size = {"steps": iterations * 20_000, "threads": threads, "runs_dir": Path(runs)}
        config = configure("mice-cpo", TASK, memory=keeping, **size)
        directory = train(config, console=Console(quiet=True)).directory
        seconds, metrics = read_csv(directory / "timing.csv")["seconds"], read_csv(directory / "metrics.csv")
    return metrics["memory_size"], np.array(taken), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="What a large memory costs.")
    parser.add_argument("--iterations", type=int, default=80)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    held, taken, seconds = measure(options.iterations, options.threads)
    print("| states | iterations | ms of a recall | share of an iteration |\n| --- | --- | --- | --- |")
    for low, high in SIZES:
        here = (held >= low) & (held <= high) & (np.arange(len(held)) > 0)  # the first one compiles
        if here.any():
            each, share = 1000 * np.median(taken[here]), np.median(taken[here] / seconds[here])
            print(f"| {np.median(held[here]):,.0f} | {here.sum()} | {each:.0f} | {share:.3f} |")


if __name__ == "__main__":
    main()
