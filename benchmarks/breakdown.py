"""Where an iteration's time goes: `python -m benchmarks.breakdown [algorithm ...] [--tasks ...]`.

The parts of an iteration are timed one by one over a few iterations, as `training/loop.py` calls them. In a run the
actor's step and the critics' fits go on side by side where there are two threads; here they follow each other, so that
each part has its own time and the sum is that of a run with one thread for learning.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jax

from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.config import Config
from flashbulb.cores import thread_count
from flashbulb.envs import make
from flashbulb.jax_setup import setup_jax
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training import iteration
from flashbulb.training.metrics import metrics_row
from flashbulb.training.recorder import Recorder
from flashbulb.training.train_state import start

Timers = defaultdict[str, float]


def timed(timers: Timers, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        result = jax.block_until_ready(function(*args, **kwargs))
        timers[name] += time.perf_counter() - begun
        return result

    return wrapper


def watch_env(timers: Timers, env: Any) -> None:
    """Time physics, autoreset and the whole step of any task. A Point that touches nothing is moved by its closed form,
    in the same call that scores and observes, which counts as task logic; physics is what is left to MuJoCo."""
    navigates = hasattr(env, "_simulator")
    simulator, advance, restart = (
        (env._simulator, "advance", "_begin") if navigates else (env.physics, "step", "_restart")
    )
    setattr(simulator, advance, timed(timers, "physics", getattr(simulator, advance)))
    setattr(env, restart, timed(timers, "autoreset", getattr(env, restart)))
    env.step = timed(timers, "whole step", env.step)


def measure(config: Config, iterations: int) -> Timers:
    """Seconds per part over `iterations` iterations; one more before them compiles and is not counted."""
    timers: Timers = defaultdict(float)
    env: Any = make(config.env, config.num_envs, config.seed, config.threads)
    policy: Any = policy_for(env.single_observation_space, env.single_action_space)
    algorithm = get_algorithm(config.algorithm)
    # With one thread the actor's step and the critics' fits follow each other.
    learner: Any = Learner(policy, algorithm, dataclasses.replace(config, threads=1))
    stream: Any = make_cost_stream(algorithm.cost_stream, config, thread_count(config.threads))
    parts = iteration.RunParts(env, learner, stream)
    state = start(env, learner, config)
    recorder = Recorder(RunDirectory.create(config), config, state)
    policy.act = timed(timers, "actor inference", policy.act)
    watch_env(timers, env)
    stream.add_intrinsic_cost = timed(timers, "memory", stream.add_intrinsic_cost)
    learner.estimate = timed(timers, "advantages", learner.estimate)
    learner._improve = timed(timers, "actor update", learner._improve)
    learner.update = timed(timers, "whole update", learner.update)
    record = timed(timers, "logging", recorder.record)
    checkpoint = timed(timers, "checkpoint (a tenth)", recorder.checkpoint)
    with mock.patch.object(iteration, "collect", timed(timers, "whole collection", iteration.collect)):
        for n in range(iterations + 1):
            if n == 1:
                timers.clear()
            state, batch, metrics = iteration.iterate(config, parts, state)
            record(metrics_row(batch, state.totals, state.memory, metrics, config.cost_limit), batch, 1.0)
            checkpoint(state._replace(env=env.get_state()))
    timers["checkpoint (a tenth)"] /= 10
    timers["critic update"] = timers.pop("whole update") - timers["actor update"]
    timers["task logic"] = timers["whole step"] - timers["physics"] - timers["autoreset"]
    timers["collection besides"] = timers.pop("whole collection") - timers.pop("whole step") - timers["actor inference"]
    for name in timers:
        timers[name] /= iterations
    return timers


PARTS = (
    "actor inference",
    "physics",
    "task logic",
    "autoreset",
    "collection besides",
    "memory",
    "advantages",
    "actor update",
    "critic update",
    "logging",
    "checkpoint (a tenth)",
)


def table(columns: list[tuple[str, str]], iterations: int, threads: int | None) -> list[str]:
    """Milliseconds of each part, one column for each pair of algorithm and task."""
    found = []
    for name, task in columns:
        with tempfile.TemporaryDirectory() as runs:
            found.append(measure(configure(name, task, runs_dir=Path(runs), threads=threads), iterations))
    heads = [f"{name}, {task.removeprefix('Safety').split('-')[0]}" for name, task in columns]
    lines = [f"| ms of 20,000 steps | {' | '.join(heads)} |", "| --- " * (1 + len(heads)) + "|"]
    rows = {part: [timers[part] for timers in found] for part in PARTS}
    rows["sum"] = [sum(timers.values()) for timers in found]
    return lines + [f"| {part} | {' | '.join(f'{1000 * s:.0f}' for s in row)} |" for part, row in rows.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Where an iteration's time goes.")
    parser.add_argument("algorithms", nargs="*", default=["mice-cpo", "mice-pid"])
    parser.add_argument("--tasks", nargs="+", default=["SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1"])
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    setup_jax()
    columns = [(name, task) for task in options.tasks for name in options.algorithms]
    print("\n".join(table(columns, options.iterations, options.threads)))


if __name__ == "__main__":
    main()
