"""The environment as a recipe's agent sees it: the task, with the cost budget in the observation if it has one."""

from __future__ import annotations

from typing import Any

from flashbulb.cmdp import CMDP, make
from flashbulb.cmdp.budget import Budgeted
from flashbulb.config import Config
from flashbulb.learn.learner import first_budget
from flashbulb.learn.parts import Recipe


def make_world(recipe: Recipe, config: Config, env: CMDP | None = None) -> CMDP:
    """The task that the configuration names, or `env` in its place."""
    env = env or make(config.env, config.num_envs, config.seed, config.threads, config.vectorise)
    if recipe.augmentation == "none":
        return env
    return Budgeted(env, config.cost_limit, first_budget(recipe, config), config.budget.discount)


def announce_budget(env: CMDP, schedule: Any) -> None:
    """Between iterations: what the episodes that begin from now on may cost (Simmer's schedule)."""
    if isinstance(env, Budgeted):
        env.set_budget(float(schedule.budget))
