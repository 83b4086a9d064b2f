"""CUP's second step: back from the policy that reward alone would have, towards one that keeps the limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import Actor, ActorBatch, Descent, descend, take
from flashbulb.config import ProximalConfig


def projection_loss(policy: Policy, params: Any, halfway: Any, evidence: ActorBatch, price: jax.Array) -> jax.Array:
    """E[ D_KL(pi || pi_half) + price * pi/pi_k A_C ]; every term has one entry per state."""
    outputs = policy.outputs(params, evidence.observations)
    distance = policy.kl(outputs, policy.outputs(halfway, evidence.observations))
    ratio = jnp.exp(policy.log_prob(outputs, evidence.actions) - evidence.log_prob)
    return (distance + price * ratio * evidence.cost_advantage).mean()


def price_of_cost(lam: jax.Array, gamma: float, gae_lam: float) -> jax.Array:
    """lambda (1 - gamma lambda_GAE) / (1 - gamma): CUP's bound in terms of GAE advantages."""
    return lam * (1 - gamma * gae_lam) / (1 - gamma)


def projection_step(
    policy: Policy,
    halfway: Actor,
    evidence: ActorBatch,
    price: jax.Array,
    learning_rate: jax.Array,
    key: jax.Array,
    config: ProximalConfig,
) -> Descent:
    """Minimise the projection's loss from pi_half on, no further from it than a proximal step may go."""

    def loss(params: Any, rows: jax.Array) -> jax.Array:
        return projection_loss(policy, params, halfway.params, take(evidence, rows), price)

    return descend(policy, loss, halfway, evidence, learning_rate, key, config)
