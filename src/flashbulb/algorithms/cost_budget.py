"""The cost budget in the state (Saute) and its schedule (Simmer).

`envs/budget_wrapper.py` appends to the observation what is left of the episode's budget, z. Here are the reward that
depends on it, the schedule of the budget, and the environment with or without the wrapper, as an algorithm needs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Metrics
from flashbulb.algorithms.registry import Algorithm
from flashbulb.batch import Batch
from flashbulb.config import BudgetConfig, Config
from flashbulb.envs import CostVectorEnv, make
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.named_costs import with_named_costs


def make_training_env(
    algorithm: Algorithm, config: Config, env: CostVectorEnv | None = None, evaluating: bool = False
) -> CostVectorEnv:
    """The task that the configuration names, or `env` in its place, as the algorithm's agent sees it."""
    if env is None:
        how = config.threads, config.vectorise, config.physics, config.env_kwargs, config.step_timeout
        env = make(config.env, config.num_envs, config.seed, *how)
    env = with_named_costs(env, config.cost_names)
    part = algorithm.augmentation_part
    return env if evaluating and part.training_only else part.wrap(env, config)


def saute_wrap(env: CostVectorEnv, config: Config) -> CostVectorEnv:
    """The environment with the whole limit as its budget."""
    return BudgetWrapper(env, config.limit, config.limit, config.budget.discount)


def simmer_wrap(env: CostVectorEnv, config: Config) -> CostVectorEnv:
    """The environment with the budget that the schedule starts with."""
    return BudgetWrapper(env, config.limit, config.limit * config.budget.start, config.budget.discount)


def saute_start(config: Config) -> BudgetSchedule:
    return BudgetSchedule.start(config.limit)


def simmer_start(config: Config) -> BudgetSchedule:
    return BudgetSchedule.start(config.limit * config.budget.start)


def saute_rewards(state: BudgetSchedule, batch: Batch, config: Config) -> tuple[Any, BudgetSchedule, Metrics]:
    rewards = reshaped_reward(batch.rewards, batch.next_observations, config.budget)
    return rewards, state, {"budget": state.budget}


def simmer_rewards(state: BudgetSchedule, batch: Batch, config: Config) -> tuple[Any, BudgetSchedule, Metrics]:
    rewards, _, metrics = saute_rewards(state, batch, config)
    return rewards, simmer_step(state, batch.means.cost, config.limit, config.budget), metrics


def set_env_budget(env: CostVectorEnv, schedule: BudgetSchedule) -> None:
    """Tell the environment the budget of the episodes that begin from now on (Simmer's schedule)."""
    assert isinstance(env, BudgetWrapper)
    env.set_budget(float(schedule.budget))


def reshaped_reward(rewards: jax.Array, next_observations: jax.Array, config: BudgetConfig) -> jax.Array:
    """The task's reward where some budget is left after the step, the unsafe reward elsewhere.

    `next_observations` are raw, and where an episode ended they are its last ones: a step belongs to the budget of its
    own episode.
    """
    return jnp.where(next_observations[..., -1] >= 0, rewards, config.unsafe_reward)


class BudgetSchedule(NamedTuple):
    """The budget of the next episodes, and the state of the controller that sets it."""

    budget: jax.Array  # () undiscounted episode cost
    integral: jax.Array  # ()
    error: jax.Array  # () smoothed, of the iteration before
    steps: jax.Array  # ()

    @classmethod
    def start(cls, budget: float) -> BudgetSchedule:
        return cls(jnp.float32(budget), jnp.float32(0), jnp.float32(0), jnp.int32(0))


def simmer_step(state: BudgetSchedule, cost: jax.Array, limit: float, config: BudgetConfig) -> BudgetSchedule:
    """Raise the budget while episodes stay below it, lower it when they do not; never above the limit.

    The error is what the batch's episodes left of the budget. Its derivative is a difference of errors, 0 at the
    start; at a bound the integral does not grow in the bound's direction.
    """
    first = state.steps == 0
    left = state.budget - cost
    error = jnp.where(first, left, config.smooth * state.error + (1 - config.smooth) * left)
    change = jnp.where(first, 0.0, error - state.error)
    integral = state.integral + error
    wanted = state.budget + config.proportional * error + config.integral * integral + config.derivative * change
    budget = jnp.clip(wanted, config.lowest * limit, limit)
    pushing = (wanted - budget) * error > 0
    return BudgetSchedule(budget, jnp.where(pushing, state.integral, integral), error, state.steps + 1)
