"""How long a run of one iteration takes with empty caches, and again with full ones: `python -m benchmarks.start`.

The iteration's own time is what it takes to sample, compile and update; the whole includes imports, the task's own
compilation, and figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.throughput import TASKS
from flashbulb.storage.csv_log import read_csv


def run(task: str, caches: Path, name: str) -> tuple[float, float]:
    """Seconds of the first iteration, and of all."""
    places = {"XDG_CACHE_HOME": str(caches / "xdg"), "NUMBA_CACHE_DIR": str(caches / "numba")}
    command = ["train", "mice-cpo", task, "--steps", "20000", "--runs-dir", str(caches), "--name", name]
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "flashbulb", *command], env=os.environ | places, check=True, stdout=subprocess.DEVNULL
    )
    return float(read_csv(caches / name / "timing.csv")["seconds"][0]), time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a run takes to start.")
    parser.add_argument("tasks", nargs="*", default=TASKS)
    options = parser.parse_args()
    print("| task | caches | first iteration, s | whole run, s |\n| --- | --- | --- | --- |")
    for task in options.tasks:
        with tempfile.TemporaryDirectory() as caches:
            for kind in ("empty", "full"):
                first, whole = run(task, Path(caches), kind)
                print(f"| {task} | {kind} | {first:.1f} | {whole:.1f} |", flush=True)


if __name__ == "__main__":
    main()
