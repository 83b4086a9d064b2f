"""Training against the physics it rests on: `python -m benchmarks.throughput` (or `make bench`).

Everything is measured in one run, in turns, and repeated, so that a noisy machine does not decide: raw `mj_step`
of the same model, substeps and threads; stepping alone; and training with each algorithm. Rates are medians over the
turns; shares are medians, with their range, of each measurement's ratio to raw physics right before and after it. Give
`--omnisafe-python PATH` to time OmniSafe's CPO in the same turns. The last table splits an iteration into its parts
(`benchmarks/breakdown.py`).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks import breakdown
from flashbulb.algorithms.registry import configure
from flashbulb.envs import make
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import train

TASKS = ("SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1")
ALGORITHMS = ("cpo", "mice-cpo", "mice-pid", "cup")
NUM_ENVS = 20
RAW, PEER = "raw mj_step", "OmniSafe CPO"


def raw_rate(env: Any, rng: np.random.Generator, steps: int = 400) -> float:
    """Environment steps per second of nothing but `mj_step`."""
    actions = _actions(env, rng, steps)
    begun = time.perf_counter()
    for part in np.split(actions, steps // 10):  # few at a time: raw physics does not reset
        env.raw_physics(part)
    return steps * env.num_envs / (time.perf_counter() - begun)


def step_rate(env: Any, rng: np.random.Generator, steps: int = 1_000) -> float:
    """Environment steps per second of the task, random actions, resets included."""
    actions = _actions(env, rng, steps)
    begun = time.perf_counter()
    for row in actions:
        env.step(row)
    return steps * env.num_envs / (time.perf_counter() - begun)


def _actions(env: Any, rng: np.random.Generator, steps: int) -> np.ndarray:
    space = env.single_action_space
    return rng.uniform(space.low, space.high, (steps, env.num_envs, *space.shape)).astype(space.dtype)


def training_rate(algorithm: str, task: str, iterations: int, threads: int | None) -> float:
    """Of one short run; its first iteration compiles and is left out."""
    with tempfile.TemporaryDirectory() as runs:
        config = configure(algorithm, task, steps=iterations * 20_000, runs_dir=Path(runs), threads=threads)
        result = train(config, console=Console(quiet=True))
        seconds = read_csv(result.directory / "timing.csv")["seconds"][1:]
    return float(20_000 * len(seconds) / seconds.sum())


def omnisafe_rate(python: str, task: str, steps: int) -> float:
    """OmniSafe's own CPO, one environment as it runs by default, on as many threads as it likes."""
    script = (
        "import omnisafe, time\n"
        f"settings = {{'train_cfgs': {{'total_steps': {steps}}}, 'algo_cfgs': {{'steps_per_epoch': {steps}}}, "
        "'logger_cfgs': {'use_wandb': False, 'use_tensorboard': False}}\n"
        f"agent = omnisafe.Agent('CPO', {task!r}, custom_cfgs=settings)\n"
        "begun = time.time(); agent.learn(); print('RATE', "
        f"{steps} / (time.time() - begun))\n"
    )
    with tempfile.TemporaryDirectory() as here:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, cwd=here)
    rates = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RATE")]
    if not rates:
        raise SystemExit(f"OmniSafe did not finish on {task}: {done.stderr.strip().splitlines()[-1:]}")
    return float(rates[0])


class Measured(NamedTuple):
    """Steps per second of one row in one turn, and of raw physics around it."""

    rate: float
    raw: float


def measure(task: str, turns: int, options: argparse.Namespace) -> dict[str, list[Measured]]:
    """Every row in turn, with raw physics in between."""
    rng = np.random.default_rng(0)
    env: Any = make(task, NUM_ENVS, seed=0, threads=options.threads)
    env.reset()
    rows: dict[str, Callable[[], float]] = {"stepping": lambda: step_rate(env, rng)}
    for algorithm in options.algorithms:
        rows[algorithm] = partial(training_rate, algorithm, task, options.iterations + 1, options.threads)
    if options.omnisafe_python:
        rows[PEER] = partial(omnisafe_rate, options.omnisafe_python, task, options.omnisafe_steps)
    step_rate(env, rng, 50)
    found: dict[str, list[Measured]] = {name: [] for name in (RAW, *rows)}
    for _ in range(turns):
        before = raw_rate(env, rng)
        found[RAW].append(Measured(before, before))
        for name, timed in rows.items():
            rate, after = timed(), raw_rate(env, rng)
            found[name].append(Measured(rate, (before + after) / 2))
            before = after
    return found


def table(task: str, found: dict[str, list[Measured]]) -> list[str]:
    lines = [f"| {task} | steps/s | share of raw physics | times OmniSafe |", "| --- | --- | --- | --- |"]
    peer = found.get(PEER)
    for name, turns in found.items():
        rate = statistics.median(turn.rate for turn in turns)
        share = spread([turn.rate / turn.raw for turn in turns], 2)
        times = spread([a.rate / b.rate for a, b in zip(turns, peer, strict=True)], 0) if peer else "not run"
        lines.append(f"| {name} | {rate:,.0f} | {share} | {times} |")
    return lines


def spread(ratios: list[float], digits: int) -> str:
    """The median and the range."""
    middle, low, high = (f"{x:.{digits}f}" for x in (statistics.median(ratios), min(ratios), max(ratios)))
    return middle if low == high else f"{middle} ({low} to {high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5, help="timed iterations of each training turn")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--omnisafe-python", default=None, help="a Python that has OmniSafe")
    parser.add_argument("--omnisafe-steps", type=int, default=4_000)
    parser.add_argument("--no-parts", dest="parts", action="store_false", help="leave out the parts of an iteration")
    options = parser.parse_args()
    for task in options.tasks:
        print("\n".join(table(task, measure(task, options.turns, options))), flush=True)
        print()
    if not options.parts:
        return
    columns = [(algorithm, task) for task in options.tasks for algorithm in options.algorithms]
    print("\n".join(breakdown.table(columns, options.iterations, options.threads)))


if __name__ == "__main__":
    main()
