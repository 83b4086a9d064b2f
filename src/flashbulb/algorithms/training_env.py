"""The environment as an algorithm's agent sees it: the task, with the cost budget in the observation if it has one."""

from __future__ import annotations

from typing import Any

from flashbulb.algorithms.learner import first_budget
from flashbulb.algorithms.parts import Algorithm
from flashbulb.config import Config
from flashbulb.envs import CostVectorEnv, make
from flashbulb.envs.budget_wrapper import BudgetWrapper


def make_training_env(algorithm: Algorithm, config: Config, env: CostVectorEnv | None = None) -> CostVectorEnv:
    """The task that the configuration names, or `env` in its place."""
    env = env or make(config.env, config.num_envs, config.seed, config.threads, config.vectorise)
    if algorithm.augmentation == "none":
        return env
    return BudgetWrapper(env, config.cost_limit, first_budget(algorithm, config), config.budget.discount)


def announce_budget(env: CostVectorEnv, schedule: Any) -> None:
    """Between iterations: what the episodes that begin from now on may cost (Simmer's schedule)."""
    if isinstance(env, BudgetWrapper):
        env.set_budget(float(schedule.budget))
