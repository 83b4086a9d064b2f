"""Safety-Gymnasium's navigation tasks, in batches, on current MuJoCo (see docs/parity.md)."""

from __future__ import annotations

from flashbulb.envs.navigation.env import Navigation
from flashbulb.envs.navigation.tasks import ENV_IDS
from flashbulb.envs.simulator import thread_count

__all__ = ["ENV_IDS", "Navigation", "make"]


def make(env_id: str, num_envs: int, seed: int, threads: int | None) -> Navigation:
    """The registry's entrance; `threads` defaults to the cores this process may use."""
    return Navigation(env_id, num_envs, seed, thread_count(threads, num_envs))
