"""What an agent lives in: batched constrained MDPs."""

from flashbulb.cmdp.contract import CMDP, State
from flashbulb.cmdp.gym_env import register_all
from flashbulb.cmdp.registry import env_ids, make

register_all()

__all__ = ["CMDP", "State", "env_ids", "make"]
