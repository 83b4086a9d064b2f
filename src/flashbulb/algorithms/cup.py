"""CUP: a proximal step for reward alone, then a projection towards a policy that keeps the limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor import Actor, ActorStep, HostStep, Metrics, StepInputs, host_generator
from flashbulb.algorithms.host_descent import HostDescent, descend_on_host, host_kl, loss_of
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import Descent, descend, proximal_step, start_adam, take
from flashbulb.batch import ActorBatch
from flashbulb.config import Config, ProximalConfig


def projection_loss(policy: Policy, params: Any, halfway: Any, batch: ActorBatch, weight: jax.Array) -> jax.Array:
    """E[ D_KL(pi || pi_half) + weight * pi/pi_k A_C ]; every term has one entry per state."""
    outputs = policy.outputs(params, batch.observations)
    distance = policy.kl(outputs, policy.outputs(halfway, batch.observations))
    ratio = jnp.exp(policy.log_prob(outputs, batch.actions) - batch.log_prob)
    return (distance + weight * ratio * batch.cost_advantage).mean()


def cost_weight(lam: jax.Array, gamma: float, gae_lam: float) -> jax.Array:
    """lambda (1 - gamma lambda_GAE) / (1 - gamma): CUP's bound in terms of GAE advantages."""
    return lam * (1 - gamma * gae_lam) / (1 - gamma)


def projection_step(
    policy: Policy, halfway: Actor, inputs: StepInputs, weight: jax.Array, config: ProximalConfig
) -> Descent:
    """Minimise the projection's loss from pi_half on, no further from it than a proximal step may go."""

    def loss(params: Any, rows: jax.Array) -> jax.Array:
        return projection_loss(policy, params, halfway.params, take(inputs.batch, rows), weight)

    return descend(policy, loss, halfway, inputs, config)


def start_both(params: Any, config: Config) -> tuple[Any, Any]:
    """Adam's states of the two steps before the first."""
    adam = start_adam(params, config)
    return adam, adam


def cup_actor(policy: Policy, config: Config) -> ActorStep:
    """Improve for reward alone, then project for cost.

    Where cost has no weight, the policy is its own projection. Passes over it would only let Adam's moments of earlier
    iterations move it.
    """

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        lam, observations = inputs.constraint.multiplier, inputs.batch.observations
        improve_key, project_key = jax.random.split(inputs.key)
        # Each step has Adam moments of its own. The projection's gradients are larger by the weight of cost; moments in
        # common would leave the improvement's, divided by their root mean square, next to nothing.
        improving, projecting = actor.optimiser
        start, free = Actor(actor.params, improving), jnp.zeros_like(lam)
        half = proximal_step(policy, start, inputs._replace(key=improve_key), free, config.proximal)
        weight = cost_weight(lam, config.cost_gamma, config.cost_lam)
        halfway = Actor(half.actor.params, projecting)
        full = jax.lax.cond(
            weight > 0,
            lambda: projection_step(policy, halfway, inputs._replace(key=project_key), weight, config.proximal),
            lambda: Descent(halfway, jnp.float32(0), jnp.int32(0)),  # see `cup_actor`
        )
        sampled = policy.outputs(actor.params, observations)
        metrics = {
            "kl": policy.kl(policy.outputs(full.actor.params, observations), sampled).mean(),
            "actor_passes": half.passes,
            "projection_passes": full.passes,
        }
        return Actor(full.actor.params, (half.actor.optimiser, full.actor.optimiser)), metrics

    return step


def cup_on_host(policy: Policy, config: Config) -> HostStep:
    """The same without JAX."""

    def run(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch, rng, proximal = inputs.batch, host_generator(inputs.key), config.proximal
        improving, projecting = actor.optimiser
        earned = loss_of(batch.reward_advantage, clip=proximal.clip)
        half = descend_on_host(policy, earned, Actor(actor.params, improving), inputs, proximal, rng)
        weight = cost_weight(inputs.constraint.multiplier, config.cost_gamma, config.cost_lam)
        projected = loss_of(-weight * batch.cost_advantage, kl_weight=1)
        halfway = Actor(half.actor.params, projecting)
        if weight > 0:
            full = descend_on_host(policy, projected, halfway, inputs, proximal, rng)
        else:
            full = HostDescent(halfway, np.float32(0), np.int32(0))
        metrics = {
            "kl": host_kl(policy, full.actor.params, actor.params, batch),
            "actor_passes": half.passes,
            "projection_passes": full.passes,
        }
        return Actor(full.actor.params, (half.actor.optimiser, full.actor.optimiser)), metrics

    return HostStep(run)
