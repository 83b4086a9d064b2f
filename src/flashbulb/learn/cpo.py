"""Constrained policy optimisation: the step of Appendix A.1 in closed form.

Maximise g.x subject to c + b.x <= 0 and x.H.x / 2 <= phi. Everything about the solution follows from four
numbers: q = g.H^-1 g, r = g.H^-1 b, s = b.H^-1 b, and c (the paper writes u, v for r, s). Two slips of the
paper's appendix are mended here: with x = H^-1 (g - nu b) / lambda the multiplier is nu = (lambda c + r)_+ / s,
not (lambda c - u)_+ / v, and a trust region of x.H.x / 2 <= phi puts 2 phi where its dual has phi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import TrustRegionConfig
from flashbulb.learn.policy import Policy
from flashbulb.learn.trust_region import Trial, fisher_product, fisher_rows, flatten, line_search, solve

# What a step did; the number is what the metrics record.
RECOVER, FROM_OUTSIDE, FROM_INSIDE, UNCONSTRAINED = 0, 1, 2, 3

_TINY = 1e-8


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
    flat = s < _TINY  # the constraint does not depend on the policy here
    safe_s = jnp.where(flat, 1.0, s)
    a = jnp.maximum(q - r**2 / safe_s, 0.0)
    b = 2 * config.kl - c**2 / safe_s
    edge = jnp.where(jnp.abs(c) > _TINY, -r / jnp.where(jnp.abs(c) > _TINY, c, 1.0), 0.0)
    # The region of nu > 0 is above the edge for c > 0 and below it for c < 0; for c = 0 it is all or nothing.
    low = jnp.where(c > _TINY, jnp.maximum(edge, 0.0), 0.0)
    high = jnp.where(c < -_TINY, jnp.maximum(edge, 0.0), jnp.inf)
    high = jnp.where((jnp.abs(c) <= _TINY) & (r <= 0), 0.0, high)
    lam_a = jnp.clip(jnp.sqrt(a / jnp.maximum(b, _TINY)), low, high)
    low_b = jnp.where(c < -_TINY, jnp.maximum(edge, 0.0), 0.0)
    high_b = jnp.where(c > _TINY, jnp.maximum(edge, 0.0), jnp.inf)
    high_b = jnp.where((jnp.abs(c) <= _TINY) & (r > 0), 0.0, high_b)
    lam_b = jnp.clip(jnp.sqrt(q / (2 * config.kl)), low_b, high_b)

    def positive(lam: jax.Array) -> jax.Array:
        return jnp.maximum(lam, _TINY)

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
    recover = -jnp.sqrt(2 * config.kl / jnp.maximum(s, _TINY)) * h_b
    return jnp.where(dual.case == RECOVER, recover, improve)


class Model(NamedTuple):
    """The step's linear and quadratic model: H^-1 g, H^-1 b, their products, and c."""

    h_g: jax.Array
    h_b: jax.Array
    q: jax.Array
    r: jax.Array
    s: jax.Array
    c: jax.Array


class Chosen(NamedTuple):
    """A full step x = H^-1 (g - nu b) / lambda, or in recovery one for cost alone."""

    step: jax.Array
    case: jax.Array
    lam: jax.Array
    nu: jax.Array
    extra_divergence: Callable[[jax.Array], jax.Array] = lambda cost_change: jnp.zeros_like(cost_change)


StepRule = Callable[[Model, TrustRegionConfig], Chosen]


def cpo_rule(model: Model, config: TrustRegionConfig) -> Chosen:
    dual = solve_dual(model.q, model.r, model.s, model.c, config)
    return Chosen(primal_step(dual, model.h_g, model.h_b, model.s, config), dual.case, dual.lam, dual.nu)


def _cost_step(model: Model, config: TrustRegionConfig) -> jax.Array:
    """The steepest way down in cost, to the region's edge."""
    return -jnp.sqrt(2 * config.kl / jnp.maximum(model.s, _TINY)) * model.h_b


def barrier_rule(model: Model, config: TrustRegionConfig) -> Chosen:
    """C-TRPO: maximise g.x within x.(H + k b b^T).x / 2 <= phi, k = barrier / slack; outside the limit, recover.

    k is the curvature at 0 of the divergence barrier * (a + (slack - a) log((slack - a) / slack)) of a rise in cost
    a = b.x. By Sherman and Morrison x ~ H^-1 (g - nu b) with nu = k r / (1 + k s), and its length in the new metric
    is q - k r^2 / (1 + k s). All in units of cost per step; `barrier` is per unit of it.
    """
    slack = jnp.maximum(-model.c, _TINY)
    k = config.barrier / slack
    nu = k * model.r / (1 + k * model.s)
    length = jnp.maximum(model.q - k * model.r**2 / (1 + k * model.s), _TINY)
    lam = jnp.sqrt(length / (2 * config.kl))
    outside = model.c > 0
    step = jnp.where(outside, _cost_step(model, config), (model.h_g - nu * model.h_b) / lam)

    def extra(cost_change: jax.Array) -> jax.Array:
        left = slack - cost_change
        grown = config.barrier * (cost_change + left * jnp.log(jnp.maximum(left, _TINY) / slack))
        return jnp.where(outside, 0.0, jnp.where(left > 0, grown, jnp.inf))

    return Chosen(step, jnp.where(outside, RECOVER, FROM_INSIDE), lam, nu, extra)


def share_rule(model: Model, config: TrustRegionConfig) -> Chosen:
    """SB-TRPO: the mix (1 - m) x_R + m x_C of both trust-region steps with the least m that keeps a share of x_C's drop.

    Within the limit, the reward's step alone.
    """
    lam = jnp.maximum(jnp.sqrt(model.q / (2 * config.kl)), _TINY)
    reward_step, cost_step = model.h_g / lam, _cost_step(model, config)
    drop = jnp.sqrt(2 * config.kl * jnp.maximum(model.s, _TINY))
    rise = model.r / lam
    mix = jnp.clip((config.share * drop + rise) / jnp.maximum(drop + rise, _TINY), 0.0, 1.0)
    mix = jnp.where(model.c > 0, mix, 0.0)
    step = (1 - mix) * reward_step + mix * cost_step
    return Chosen(step, jnp.where(model.c > 0, FROM_OUTSIDE, UNCONSTRAINED), lam, mix)


def cpo_step(
    policy: Policy,
    params: Any,
    observations: jax.Array,
    actions: jax.Array,
    reward_advantage: jax.Array,
    cost_advantage: jax.Array,
    constraint: jax.Array,
    config: TrustRegionConfig,
    rule: StepRule | None = None,
) -> tuple[Any, dict[str, jax.Array]]:
    """One update of the policy. `constraint` is c: positive when the limit is exceeded."""
    rule = rule or cpo_rule
    theta, unflatten = flatten(params)

    def outputs_of(vector: jax.Array) -> Any:
        return policy.outputs(unflatten(vector), observations)

    old = outputs_of(theta)
    old_log_prob = policy.log_prob(old, actions)

    def surrogate(advantage: jax.Array) -> Callable[[jax.Array], jax.Array]:
        """theta -> E[pi/pi_k A] (equation 13)."""
        return lambda v: (jnp.exp(policy.log_prob(outputs_of(v), actions) - old_log_prob) * advantage).mean()

    g = jax.grad(surrogate(reward_advantage))(theta)
    b = jax.grad(surrogate(cost_advantage))(theta)
    metric_states = observations[fisher_rows(len(observations), config.fisher_states)]
    product = fisher_product(lambda v: policy.outputs(unflatten(v), metric_states), policy.kl, theta)
    h_g, h_b = solve(product, g, config), solve(product, b, config)
    q, r, s = g @ h_g, g @ h_b, b @ h_b
    chosen = rule(Model(h_g, h_b, q, r, s, constraint), config)

    def trial_of(vector: jax.Array) -> Trial:
        new = outputs_of(vector)
        ratio = jnp.exp(policy.log_prob(new, actions) - old_log_prob)
        return Trial(
            policy.kl(new, old).mean(),
            ((ratio - 1) * reward_advantage).mean(),
            ((ratio - 1) * cost_advantage).mean(),
        )

    def acceptable(trial: Trial) -> jax.Array:
        # Inside the limit reward must not fall and cost may rise into the slack; outside only the cost has a say.
        improves = (constraint > 0) | (chosen.case == RECOVER) | (trial.reward_gain >= 0)
        divergence = trial.kl + chosen.extra_divergence(trial.cost_change)
        return (divergence <= config.kl) & improves & (trial.cost_change <= jnp.maximum(-constraint, 0.0))

    search = line_search(trial_of, acceptable, theta, chosen.step, config)
    report = {
        "kl": search.trial.kl,
        "cpo_case": chosen.case,
        "step_fraction": search.fraction,
        "reward_gain": search.trial.reward_gain,
        "cost_change": search.trial.cost_change,
        "lambda": chosen.lam,
        "nu": chosen.nu,
    }
    return unflatten(search.theta), report
