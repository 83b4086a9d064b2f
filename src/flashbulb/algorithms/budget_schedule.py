"""Saute's reshaped reward, and Simmer's schedule of the budget.

The observation's last entry, z, is what is left of the episode's budget (`cmdp/budget.py` puts it there).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import BudgetConfig


def reshaped_reward(rewards: jax.Array, next_observations: jax.Array, config: BudgetConfig) -> jax.Array:
    """The task's reward where the budget still holds after the step, the unsafe reward elsewhere.

    `next_observations` are raw, and where an episode ended they are its own last: a step is judged by the budget of
    the episode it belongs to.
    """
    return jnp.where(next_observations[..., -1] >= 0, rewards, config.unsafe_reward)


class Schedule(NamedTuple):
    """The budget of the next episodes, and the controller's memory."""

    budget: jax.Array  # () undiscounted episode cost
    integral: jax.Array  # ()
    error: jax.Array  # () smoothed, of the iteration before
    steps: jax.Array  # ()

    @classmethod
    def start(cls, budget: float) -> Schedule:
        return cls(jnp.float32(budget), jnp.float32(0), jnp.float32(0), jnp.int32(0))


def simmer_step(state: Schedule, cost: jax.Array, limit: float, config: BudgetConfig) -> Schedule:
    """Raise the budget while episodes stay below it, lower it when they do not; never above the limit.

    The error is what the batch's episodes left of the budget. Its derivative is a difference of errors, 0 at the
    start; at a bound the integral grows no further in the bound's direction.
    """
    first = state.steps == 0
    left = state.budget - cost
    error = jnp.where(first, left, config.smooth * state.error + (1 - config.smooth) * left)
    change = jnp.where(first, 0.0, error - state.error)
    integral = state.integral + error
    wanted = state.budget + config.proportional * error + config.integral * integral + config.derivative * change
    budget = jnp.clip(wanted, config.lowest * limit, limit)
    pushing = (wanted - budget) * error > 0
    return Schedule(budget, jnp.where(pushing, state.integral, integral), error, state.steps + 1)
