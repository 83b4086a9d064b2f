"""PCPO (Yang, Rosca, Narasimhan, Ramadge, 2020): a step for reward, then its projection onto the constraint."""

from __future__ import annotations

import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.trust_region import (
    FROM_INSIDE,
    FROM_OUTSIDE,
    TINY,
    FullStep,
    StepModel,
    trust_region_step,
)
from flashbulb.config import Config, TrustRegionConfig


def projection_rule(model: StepModel, config: TrustRegionConfig) -> FullStep:
    """x = x_R - nu H^-1 b, with x_R = H^-1 g / lambda to the edge of the region and nu = (c + b.x_R)_+ / s.

    It is the point nearest to x_R, in the metric H of the KL, at which c + b.x <= 0. Far outside the limit that point
    is far outside the region as well; then the step goes towards it, to the edge. Without that the line search, which
    shortens a step to a hundredth at most, would find none, and the policy would stay as it is while it violates.
    """
    lam = jnp.maximum(jnp.sqrt(model.q / (2 * config.kl)), TINY)
    nu = jnp.maximum(model.c + model.r / lam, 0.0) / jnp.maximum(model.s, TINY)
    square = model.q / lam**2 - 2 * nu * model.r / lam + nu**2 * model.s  # x.H x
    share = jnp.minimum(1.0, jnp.sqrt(2 * config.kl / jnp.maximum(square, TINY)))
    case = jnp.where(model.c > 0, FROM_OUTSIDE, FROM_INSIDE)
    return FullStep(share * (model.h_g / lam - nu * model.h_b), case, lam, nu)


def pcpo_actor(policy: Policy, config: Config) -> ActorStep:
    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        region, c = config.trust_region, inputs.constraint.c
        params, metrics = trust_region_step(policy, actor.params, inputs.batch, c, projection_rule, region)
        return Actor(params, actor.optimiser), metrics

    return step
