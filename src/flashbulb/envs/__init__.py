"""Batched constrained environments: the contract, the tasks, the simulator and the adapters to and from Gymnasium.

Importing this package registers the tasks with Gymnasium as `flashbulb/<id>`; a task's module is imported by `make`.
Uses the base modules only (`cores`, `errors`, `jit`, `plugins`).
"""

from flashbulb.envs.base import CostVectorEnv, State
from flashbulb.envs.registry import env_ids, make, register_env, register_gymnasium

register_gymnasium()

__all__ = ["CostVectorEnv", "State", "env_ids", "make", "register_env"]
