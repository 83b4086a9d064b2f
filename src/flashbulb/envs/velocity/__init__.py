"""Safety-Gymnasium's velocity tasks in batches, on current MuJoCo (see docs/parity.md).

`velocity_env.py` is the environment; `velocity_robots.py` has the robots as data; `robot_dynamics.py` leads to the
compiled dynamics that move four of them. Uses the other modules of `flashbulb.envs`.
"""

from __future__ import annotations

from typing import Any

from flashbulb.envs.registry import PhysicsBackend
from flashbulb.envs.velocity.velocity_env import PARAMETERS, VelocityTask

__all__ = ["PARAMETERS", "VelocityTask", "make"]


def make(
    env_id: str, num_envs: int, seed: int, threads: int | None, physics: PhysicsBackend | None = None, **parameters: Any
) -> VelocityTask:
    """Called by the registry."""
    return VelocityTask(env_id, num_envs, seed, threads, physics, **parameters)
