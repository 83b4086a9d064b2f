"""The natural policy gradient on the Lagrangian advantage: TRPO's step without its line search (RCPO)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs, lagrangian_advantage
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.trust_region import TINY, fisher_product, fisher_rows, flatten, solve
from flashbulb.config import Config


def natural_actor(policy: Policy, config: Config) -> ActorStep:
    """theta + H^-1 g sqrt(2 phi / g.H^-1 g)."""
    region = config.trust_region

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch = inputs.batch
        theta, unflatten = flatten(actor.params)
        advantage = lagrangian_advantage(batch.reward_advantage, batch.cost_advantage, inputs.constraint.multiplier)

        def surrogate(vector: jax.Array) -> jax.Array:
            log_prob = policy.log_prob(policy.outputs(unflatten(vector), batch.observations), batch.actions)
            return (jnp.exp(log_prob - batch.log_prob) * advantage).mean()

        g = jax.grad(surrogate)(theta)
        states = batch.observations[fisher_rows(len(batch.observations), region.fisher_states)]
        product = fisher_product(lambda v: policy.outputs(unflatten(v), states), policy.kl, theta)
        h_g = solve(product, g, region)
        params = unflatten(theta + h_g * jnp.sqrt(2 * region.kl / jnp.maximum(g @ h_g, TINY)))
        old, new = (policy.outputs(p, batch.observations) for p in (actor.params, params))
        return Actor(params, actor.optimiser), {"kl": policy.kl(new, old).mean()}

    return step
