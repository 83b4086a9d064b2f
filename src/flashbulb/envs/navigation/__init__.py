"""Safety-Gymnasium's navigation tasks in batches, on current MuJoCo (see docs/parity.md).

`env.py` is the environment; `tasks.py` has the levels as data. Uses the other modules of `flashbulb.envs`.
"""

from __future__ import annotations

from typing import Any

from flashbulb.cores import thread_count
from flashbulb.envs.navigation.env import Navigation
from flashbulb.envs.navigation.tasks import ENV_IDS, PARAMETERS
from flashbulb.envs.registry import PhysicsBackend

__all__ = ["ENV_IDS", "PARAMETERS", "Navigation", "make"]


def make(
    env_id: str, num_envs: int, seed: int, threads: int | None, physics: PhysicsBackend | None = None, **parameters: Any
) -> Navigation:
    """Called by the registry."""
    return Navigation(env_id, num_envs, seed, thread_count(threads, num_envs), physics, **parameters)
