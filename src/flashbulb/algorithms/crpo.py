"""CRPO (Xu, Liang, Lan, 2021): TRPO's step for reward while the limit is kept, for cost while it is not.

Both have a trust region; there is neither a multiplier nor a dual problem.
"""

from __future__ import annotations

import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.cpo import trpo_actor
from flashbulb.algorithms.policy import Policy
from flashbulb.config import Config


def crpo_actor(policy: Policy, config: Config) -> ActorStep:
    free_step = trpo_actor(policy, config)

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch, constraint = inputs.batch, inputs.constraint
        for_cost = constraint.excess > config.crpo.tolerance
        advantage = jnp.where(for_cost, -batch.cost_advantage, batch.reward_advantage)
        free = constraint._replace(multiplier=jnp.zeros_like(constraint.multiplier))
        inputs = inputs._replace(batch=batch._replace(reward_advantage=advantage), constraint=free)
        actor, metrics = free_step(actor, inputs)
        return actor, metrics | {"for_cost": for_cost}

    return step
