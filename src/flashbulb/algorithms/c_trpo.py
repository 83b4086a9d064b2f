"""C-TRPO (Milosevic, Mueller, Scherf, 2025): a trust region that contains only safe policies.

The region's divergence is the KL plus a term that grows without bound as the cost nears the limit. From outside the
limit the policy recovers, with hysteresis: it steps for cost alone until the cost is well below the limit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.trust_region import (
    FROM_INSIDE,
    RECOVER,
    TINY,
    FullStep,
    StepModel,
    cost_step,
    trust_region_step,
)
from flashbulb.config import Config, TrustRegionConfig


def barrier_divergence(cost_change: jax.Array, slack: jax.Array, barrier: float) -> jax.Array:
    """barrier * (a + (slack - a) log((slack - a) / slack)) of a rise in cost a; infinite from the limit on."""
    left = slack - cost_change
    inside = barrier * (cost_change + left * jnp.log(jnp.maximum(left, TINY) / slack))
    return jnp.where(left > 0, inside, jnp.inf)


def barrier_rule(model: StepModel, config: TrustRegionConfig, recovering: jax.Array) -> FullStep:
    """Maximise g.x within x.(H + k b b^T).x / 2 <= phi, k = barrier / slack; when recovering, step for cost alone.

    k is the curvature of the divergence at 0. By Sherman and Morrison x ~ H^-1 (g - nu b) with nu = k r / (1 + k s),
    and its squared length in the new metric is q - k r^2 / (1 + k s). All in units of cost per step.
    """
    slack = jnp.maximum(-model.c, TINY)
    k = config.barrier / slack
    nu = k * model.r / (1 + k * model.s)
    length = jnp.maximum(model.q - k * model.r**2 / (1 + k * model.s), TINY)
    lam = jnp.sqrt(length / (2 * config.kl))
    step = jnp.where(recovering, cost_step(model, config), (model.h_g - nu * model.h_b) / lam)

    def extra(cost_change: jax.Array) -> jax.Array:
        return jnp.where(recovering, 0.0, barrier_divergence(cost_change, slack, config.barrier))

    return FullStep(step, jnp.where(recovering, RECOVER, FROM_INSIDE), lam, nu, extra)


def still_recovering(recovering: jax.Array, excess: jax.Array, limit: float, hysteresis: float) -> jax.Array:
    """Begin when the limit is exceeded, end when the cost is below `hysteresis` times the limit."""
    return (excess > 0) | (recovering & (excess > (hysteresis - 1) * limit))


def start_recovery(params: Any, config: Config) -> jax.Array:
    """Before the first step it is not recovering."""
    return jnp.asarray(False)


def c_trpo_actor(policy: Policy, config: Config) -> ActorStep:
    """The actor's optimiser state is whether it is recovering."""

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        region, constraint = config.trust_region, inputs.constraint
        recovering = still_recovering(actor.optimiser, constraint.excess, config.limit, region.hysteresis)
        recovering |= constraint.c > 0  # with integral action c may be positive where the excess is not
        rule = partial(barrier_rule, recovering=recovering)
        params, metrics = trust_region_step(policy, actor.params, inputs.batch, constraint.c, rule, region)
        return Actor(params, recovering), metrics

    return step
