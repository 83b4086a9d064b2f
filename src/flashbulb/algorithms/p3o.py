"""P3O (Zhang, Shen, Yang, Chen, Wang, Yuan, Tao, 2022): PPO with an exact penalty of the exceeded limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import clipped_loss, descend, take
from flashbulb.config import Config


def p3o_actor(policy: Policy, config: Config) -> ActorStep:
    """Minimise PPO's loss + kappa (c + E[max(ratio A_C, clip(ratio) A_C)])_+."""

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch, c = inputs.batch, inputs.constraint.c

        def loss(params: Any, rows: jax.Array) -> jax.Array:
            part = take(batch, rows)
            earned = clipped_loss(policy, params, part, part.reward_advantage, config.proximal)
            # max(x, clip x) of A_C is -min(x, clip x) of -A_C, which is PPO's loss for it.
            rise = clipped_loss(policy, params, part, -part.cost_advantage, config.proximal)
            return earned + config.p3o.kappa * jnp.maximum(c + rise, 0.0)

        descent = descend(policy, loss, actor, inputs, config.proximal)
        return descent.actor, {"kl": descent.kl, "actor_passes": descent.passes}

    return step
