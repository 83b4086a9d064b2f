"""Constrained policy optimisation: the step of Appendix A.1 in closed form.

Maximise g.x subject to c + b.x <= 0 and x.H.x / 2 <= phi. The solution follows from four numbers:
q = g.H^-1 g, r = g.H^-1 b, s = b.H^-1 b, and c (the paper writes u, v for r, s). Two slips of the paper's
appendix are corrected here: with x = H^-1 (g - nu b) / lambda the multiplier is nu = (lambda c + r)_+ / s,
not (lambda c - u)_+ / v, and a trust region of x.H.x / 2 <= phi puts 2 phi where its dual has phi.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs, lagrangian_advantage
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.trust_region import (
    FROM_INSIDE,
    FROM_OUTSIDE,
    RECOVER,
    TINY,
    UNCONSTRAINED,
    FullStep,
    StepModel,
    trust_region_step,
)
from flashbulb.config import Config, TrustRegionConfig


class Dual(NamedTuple):
    lam: jax.Array
    nu: jax.Array
    case: jax.Array


def solve_dual(q: jax.Array, r: jax.Array, s: jax.Array, c: jax.Array, config: TrustRegionConfig) -> Dual:
    """Minimise the dual (q - 2 nu r + nu^2 s) / (2 lambda) - nu c + lambda phi over lambda > 0, nu >= 0.

    Where nu > 0 (lambda c + r > 0) the dual is A / (2 lambda) + lambda B / 2 - r c / s, where nu = 0 it is
    q / (2 lambda) + lambda phi. Each branch has its minimum where a square root says, pushed to the edge
    of its region if it lies outside; the smaller of the two wins.
    """
    flat = s < TINY  # the constraint does not depend on the policy here
    safe_s = jnp.where(flat, 1.0, s)
    a = jnp.maximum(q - r**2 / safe_s, 0.0)
    b = 2 * config.kl - c**2 / safe_s
    edge = jnp.where(jnp.abs(c) > TINY, -r / jnp.where(jnp.abs(c) > TINY, c, 1.0), 0.0)
    # The region of nu > 0 is above the edge for c > 0 and below it for c < 0; for c = 0 it is all or nothing.
    low = jnp.where(c > TINY, jnp.maximum(edge, 0.0), 0.0)
    high = jnp.where(c < -TINY, jnp.maximum(edge, 0.0), jnp.inf)
    high = jnp.where((jnp.abs(c) <= TINY) & (r <= 0), 0.0, high)
    lam_a = jnp.clip(jnp.sqrt(a / jnp.maximum(b, TINY)), low, high)
    low_b = jnp.where(c < -TINY, jnp.maximum(edge, 0.0), 0.0)
    high_b = jnp.where(c > TINY, jnp.maximum(edge, 0.0), jnp.inf)
    high_b = jnp.where((jnp.abs(c) <= TINY) & (r > 0), 0.0, high_b)
    lam_b = jnp.clip(jnp.sqrt(q / (2 * config.kl)), low_b, high_b)

    def positive(lam: jax.Array) -> jax.Array:
        return jnp.maximum(lam, TINY)

    dual_a = a / (2 * positive(lam_a)) + lam_a * b / 2 - r * c / safe_s
    dual_b = q / (2 * positive(lam_b)) + lam_b * config.kl
    dual_a = jnp.where(lam_a > 0, dual_a, jnp.inf)
    dual_b = jnp.where(lam_b > 0, dual_b, jnp.inf)
    lam = positive(jnp.where(dual_a < dual_b, lam_a, lam_b))
    nu = jnp.maximum(lam * c + r, 0.0) / safe_s

    everywhere_feasible = flat | ((c <= 0) & (b <= 0))
    infeasible = ~flat & (c > 0) & (b <= 0)
    recover = infeasible if config.recover == "infeasible" else c > 0
    unconstrained = everywhere_feasible & ~recover
    case = jnp.where(recover, RECOVER, jnp.where(c > 0, FROM_OUTSIDE, FROM_INSIDE))
    case = jnp.where(unconstrained, UNCONSTRAINED, case)
    free = positive(jnp.sqrt(q / (2 * config.kl)))
    return Dual(jnp.where(unconstrained, free, lam), jnp.where(unconstrained, 0.0, nu), case)


def primal_step(dual: Dual, h_g: jax.Array, h_b: jax.Array, s: jax.Array, config: TrustRegionConfig) -> jax.Array:
    """x = H^-1 (g - nu b) / lambda, or in recovery the steepest way down in cost to the region's edge."""
    improve = (h_g - dual.nu * h_b) / dual.lam
    recover = -jnp.sqrt(2 * config.kl / jnp.maximum(s, TINY)) * h_b
    return jnp.where(dual.case == RECOVER, recover, improve)


def cpo_rule(model: StepModel, config: TrustRegionConfig) -> FullStep:
    dual = solve_dual(model.q, model.r, model.s, model.c, config)
    return FullStep(primal_step(dual, model.h_g, model.h_b, model.s, config), dual.case, dual.lam, dual.nu)


def cpo_actor(policy: Policy, config: Config) -> ActorStep:
    """CPO: the cost is a constraint of the step itself."""

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        region, c = config.trust_region, inputs.constraint.c
        params, metrics = trust_region_step(policy, actor.params, inputs.batch, c, cpo_rule, region)
        return Actor(params, actor.optimiser), metrics

    return step


def trpo_actor(policy: Policy, config: Config) -> ActorStep:
    """TRPO on the Lagrangian advantage: CPO's step with a constraint that nothing can violate."""

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        batch = inputs.batch
        lam = inputs.constraint.multiplier
        advantage = lagrangian_advantage(batch.reward_advantage, batch.cost_advantage, lam)
        free = batch._replace(reward_advantage=advantage, cost_advantage=jnp.zeros_like(advantage))
        region = config.trust_region
        if region.decay:
            region = dataclasses.replace(region, kl=region.kl * (1 - region.decay * inputs.progress))
        params, metrics = trust_region_step(policy, actor.params, free, jnp.float32(-1), cpo_rule, region)
        return Actor(params, actor.optimiser), {name: metrics[name] for name in ("kl", "step_fraction", "reward_gain")}

    return step
