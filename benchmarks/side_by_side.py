"""What a study does, two runs at a time on two cores with one thread each: `python -m benchmarks.side_by_side`.

In turns: a run alone on the first core, two at once, one alone on the second. The ratio is what the two made together
to what the two made alone, in steps per second of all iterations but the first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

from benchmarks.throughput import TASKS


def start(task: str, iterations: int, core: int) -> subprocess.Popen[str]:
    """A process that holds to one core and prints its rate."""
    script = (
        f"import os; os.sched_setaffinity(0, {{{core}}})\n"
        "from benchmarks.throughput import training_rate\n"
        f"print(training_rate('mice-cpo', {task!r}, {iterations}, 1))"
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def rate(process: subprocess.Popen[str]) -> float:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit("a run did not finish")
    return float(output.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Two runs at once against two alone.")
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=15)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2] if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        raise SystemExit("needs two cores, and a system on which a process can hold to one of them")
    for task in options.tasks:
        ratios = []
        for _ in range(options.turns):
            first = rate(start(task, options.iterations, cores[0]))
            together = sum(map(rate, [start(task, options.iterations, core) for core in cores]))
            ratios.append(together / (first + rate(start(task, options.iterations, cores[1]))))
        found = " ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"{task}: median {statistics.median(ratios):.2f} of {found}", flush=True)


if __name__ == "__main__":
    main()
