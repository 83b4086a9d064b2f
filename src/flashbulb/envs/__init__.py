"""What an agent lives in: batched constrained MDPs."""

from flashbulb.envs.base import CostVectorEnv, State
from flashbulb.envs.gym_env import register_all
from flashbulb.envs.registry import env_ids, make

register_all()

__all__ = ["CostVectorEnv", "State", "env_ids", "make"]
