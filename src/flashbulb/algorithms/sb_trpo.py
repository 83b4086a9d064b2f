"""SB-TRPO (Kanwar, Wagner, Ong, 2025): a share of the possible cost reduction, the rest of the step for reward."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.trust_region import (
    FROM_OUTSIDE,
    TINY,
    UNCONSTRAINED,
    FullStep,
    StepModel,
    cost_step,
    trust_region_step,
)
from flashbulb.config import Config, TrustRegionConfig


def mixing_weight(model: StepModel, config: TrustRegionConfig) -> jax.Array:
    """The smallest m for which the step (1 - m) x_R + m x_C reduces the cost by `share` of what x_C alone would."""
    reduction = jnp.sqrt(2 * config.kl * jnp.maximum(model.s, TINY))  # -b.x_C
    increase = model.r / jnp.maximum(jnp.sqrt(model.q / (2 * config.kl)), TINY)  # b.x_R
    return jnp.clip((config.share * reduction + increase) / jnp.maximum(reduction + increase, TINY), 0.0, 1.0)


def share_rule(model: StepModel, config: TrustRegionConfig) -> FullStep:
    """Outside the limit a mix of the reward's and the cost's trust-region steps, inside it the reward's step alone."""
    lam = jnp.maximum(jnp.sqrt(model.q / (2 * config.kl)), TINY)
    mix = jnp.where(model.c > 0, mixing_weight(model, config), 0.0)
    step = (1 - mix) * model.h_g / lam + mix * cost_step(model, config)
    return FullStep(step, jnp.where(model.c > 0, FROM_OUTSIDE, UNCONSTRAINED), lam, mix)


def sb_trpo_actor(policy: Policy, config: Config) -> ActorStep:
    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        region, c = config.trust_region, inputs.constraint.c
        params, metrics = trust_region_step(policy, actor.params, inputs.batch, c, share_rule, region)
        return Actor(params, actor.optimiser), metrics

    return step
