"""How much of MuJoCo's own speed is left once tasks are stepped: `python -m benchmarks.stepping [ids ...]`.

In one run, in turns and from the same states under the same random actions: `env.raw_physics(actions)`, which
is nothing but `mj_step` on the same threads, and `env.step` for each of the actions. The machine's other work
slows both alike, so look at the ratio (the median over turns) and not at either speed. The last column is the ratio
of processor time: what a step adds to its physics, without the waiting of threads for each other, which grows when
other processes want the same cores.

A task joins by having `raw_physics(actions)`: run its model's substeps for `actions[step, env]` from the
current states, in as few calls as it can, and change nothing.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from flashbulb.envs import env_ids, make

RAW_STEPS = 10  # in a turn; few: raw physics does not reset, so its states must not drift far from those of the task
TASK_STEPS = 100  # more: ten steps of a Point task are over before caches and threads have found their places


def now() -> np.ndarray:
    """Seconds by the clock, and of processor time in all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def turn(env: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Both kinds of seconds per vector step, of raw physics and of the task."""
    space = env.single_action_space
    size = (TASK_STEPS, env.num_envs, *space.shape)
    actions = rng.uniform(space.low, space.high, size).astype(space.dtype)
    begin = now()
    env.raw_physics(actions[:RAW_STEPS])
    middle = now()
    for row in actions:
        env.step(row)
    return (middle - begin) / RAW_STEPS, (now() - middle) / TASK_STEPS


def measure(env_id: str, num_envs: int, threads: int | None, turns: int) -> tuple[float, float, float, float]:
    """Steps per second raw and of the task, and raw / task in seconds and in processor time (all medians)."""
    env = make(env_id, num_envs, seed=0, threads=threads)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(3):  # caches, thread pools, just-in-time compilation
        turn(env, rng)
    raw, task = np.array([turn(env, rng) for _ in range(turns)]).swapaxes(0, 1)
    env.close()
    speeds = num_envs / np.median([raw[:, 0], task[:, 0]], axis=1)
    ratios = np.median(raw / task, axis=0)
    return float(speeds[0]), float(speeds[1]), float(ratios[0]), float(ratios[1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps per second of tasks against raw MuJoCo.")
    known = [env_id for env_id in env_ids() if env_id.startswith("Safety")]
    parser.add_argument("env_ids", nargs="*", default=known, metavar="id", help="tasks (default: all on MuJoCo)")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[20, 64])
    parser.add_argument("--threads", type=int, default=None, help="default: all cores")
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    print(f"{'task':32}{'envs':>6}{'raw steps/s':>14}{'task steps/s':>14}{'ratio':>8}{'cpu ratio':>11}")
    for env_id in options.env_ids:
        for num_envs in options.num_envs:
            raw, task, ratio, cpu = measure(env_id, num_envs, options.threads, options.turns)
            print(f"{env_id:32}{num_envs:6d}{raw:14,.0f}{task:14,.0f}{ratio:8.2f}{cpu:11.2f}", flush=True)


if __name__ == "__main__":
    main()
