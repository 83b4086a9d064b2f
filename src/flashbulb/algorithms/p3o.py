"""P3O (Zhang, Shen, Yang, Chen, Wang, Yuan, Tao, 2022): PPO with an exact penalty of the exceeded limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, HostStep, Metrics, StepInputs
from flashbulb.algorithms.host_descent import host_step, loss_of
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import clipped_loss, descend, take
from flashbulb.algorithms.proximal_loss import ProximalLoss
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


def p3o_on_host(policy: Policy, config: Config) -> HostStep:
    """The same without JAX."""

    def loss(inputs: StepInputs) -> ProximalLoss:
        advantages = inputs.batch.reward_advantage, inputs.batch.cost_advantage
        return loss_of(*advantages, clip=config.proximal.clip, kappa=config.p3o.kappa, c=inputs.constraint.c)

    return host_step(policy, config.proximal, loss)
