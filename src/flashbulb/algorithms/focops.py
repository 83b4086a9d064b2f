"""FOCOPS (Zhang, Vuong, Ross, 2020): first-order steps towards the optimal policy of a constrained step.

Without parameters that policy is pi* ~ pi_k exp(A / T), with A the Lagrangian advantage and T a temperature. The loss
is the part of KL(pi || pi*) that depends on pi, over the states where pi is still near pi_k.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, HostStep, Metrics, StepInputs, lagrangian_advantage
from flashbulb.algorithms.host_descent import host_step, loss_of
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import descend, take
from flashbulb.algorithms.proximal_loss import ProximalLoss
from flashbulb.batch import ActorBatch
from flashbulb.config import Config


def focops_loss(
    policy: Policy, params: Any, sampled: Any, batch: ActorBatch, advantage: jax.Array, config: Config
) -> jax.Array:
    """E[ (KL(pi || pi_k) - pi/pi_k A / T) 1[KL(pi || pi_k) <= kl] ]; `sampled` are the parameters of pi_k."""
    outputs = policy.outputs(params, batch.observations)
    kl = policy.kl(outputs, policy.outputs(sampled, batch.observations))
    ratio = jnp.exp(policy.log_prob(outputs, batch.actions) - batch.log_prob)
    near = jax.lax.stop_gradient(kl) <= config.proximal.kl
    return jnp.where(near, kl - ratio * advantage / config.focops.temperature, 0.0).mean()


def focops_actor(policy: Policy, config: Config) -> ActorStep:
    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch, lam = inputs.batch, inputs.constraint.multiplier
        advantage = lagrangian_advantage(batch.reward_advantage, batch.cost_advantage, lam)

        def loss(params: Any, rows: jax.Array) -> jax.Array:
            return focops_loss(policy, params, actor.params, take(batch, rows), advantage[rows], config)

        descent = descend(policy, loss, actor, inputs, config.proximal)
        return descent.actor, {"kl": descent.kl, "actor_passes": descent.passes}

    return step


def focops_on_host(policy: Policy, config: Config) -> HostStep:
    """The same without JAX."""

    def loss(inputs: StepInputs) -> ProximalLoss:
        advantages = inputs.batch.reward_advantage, inputs.batch.cost_advantage
        advantage = lagrangian_advantage(*advantages, inputs.constraint.multiplier) / config.focops.temperature
        return loss_of(advantage, kl_weight=1, near=config.proximal.kl)

    return host_step(policy, config.proximal, loss)
