"""CRPO (Xu, Liang, Lan, 2021): TRPO's step for reward while the limit is kept, for cost while it is not.

Both have a trust region; there is neither a multiplier nor a dual problem. Of several costs, the step is for the one
that exceeds its limit most in relation to it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.cpo import trpo_actor
from flashbulb.algorithms.policy import Policy
from flashbulb.config import Config
from flashbulb.cost_limits import relative_excess


def most_exceeded(excess: jax.Array, exceeded: jax.Array, limits: np.ndarray) -> jax.Array:
    """Of several costs that are exceeded, the one that is exceeded most in relation to its limit: (K,), true for it."""
    share = relative_excess(limits + excess, limits)
    return exceeded & (jnp.arange(len(limits)) == jnp.where(exceeded, share, -jnp.inf).argmax())


def crpo_actor(policy: Policy, config: Config) -> ActorStep:
    free_step = trpo_actor(policy, config)

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch, constraint = inputs.batch, inputs.constraint
        for_cost = constraint.excess > config.crpo.tolerance
        cost_advantage, exceeded = batch.cost_advantage, for_cost
        if isinstance(config.cost_limit, dict):
            for_cost = most_exceeded(constraint.excess, for_cost, np.array(list(config.cost_limit.values())))
            cost_advantage, exceeded = (for_cost * cost_advantage).sum(axis=-1), for_cost.any()
        advantage = jnp.where(exceeded, -cost_advantage, batch.reward_advantage)
        free = constraint._replace(multiplier=jnp.zeros_like(constraint.multiplier))
        inputs = inputs._replace(batch=batch._replace(reward_advantage=advantage), constraint=free)
        actor, metrics = free_step(actor, inputs)
        return actor, metrics | {"for_cost": for_cost}

    return step
