"""TRPO on the Lagrangian A_R - lambda A_C, with gradients averaged over recent iterations."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import TrustRegionConfig
from flashbulb.learn.policy import Policy
from flashbulb.learn.proximal import Evidence
from flashbulb.learn.trust_region import Trial, fisher_product, fisher_rows, flatten, line_search, solve

_TINY = 1e-12


class Gradients(NamedTuple):
    """Moving averages over iterations, and how many went into them."""

    reward: jax.Array
    cost: jax.Array
    steps: jax.Array

    @classmethod
    def start(cls, params: Any) -> Gradients:
        theta, _ = flatten(params)
        return cls(jnp.zeros_like(theta), jnp.zeros_like(theta), jnp.int32(0))


def lagrangian_step(
    policy: Policy,
    params: Any,
    past: Gradients,
    evidence: Evidence,
    lam: jax.Array,
    left: jax.Array,
    config: TrustRegionConfig,
) -> tuple[Any, Gradients, dict[str, jax.Array]]:
    """x ~ H^-1 (g - lambda b) / (1 + lambda) to the region's edge, with g and b averaged, their start corrected as Adam's is.

    The cost's gradient in one batch is mostly noise; what is left of it in the mean over several is the signal.
    """
    theta, unflatten = flatten(params)
    region = config.kl * (1 - config.decay * (1 - left))

    def outputs_of(vector: jax.Array) -> Any:
        return policy.outputs(unflatten(vector), evidence.observations)

    def surrogates(vector: jax.Array) -> jax.Array:
        ratio = jnp.exp(policy.log_prob(outputs_of(vector), evidence.actions) - evidence.log_prob)
        return jnp.stack([(ratio * evidence.reward_advantage).mean(), (ratio * evidence.cost_advantage).mean()])

    old, before = outputs_of(theta), surrogates(theta)
    g, b = jax.jacrev(surrogates)(theta)
    weight, steps = config.momentum, past.steps + 1
    now = Gradients(weight * past.reward + (1 - weight) * g, weight * past.cost + (1 - weight) * b, steps)
    unbias = 1 / (1 - weight**steps) if weight else 1.0
    wanted = unbias * (now.reward - lam * now.cost) / (1 + lam)

    metric_states = evidence.observations[fisher_rows(len(evidence.observations), config.fisher_states)]
    product = fisher_product(lambda v: policy.outputs(unflatten(v), metric_states), policy.kl, theta)
    direction = solve(product, wanted, config)
    curved = direction @ product(direction)
    length = curved if config.reach == "full" else direction @ wanted
    step = jnp.sqrt(2 * region / jnp.maximum(length, _TINY)) * direction

    def trial_of(vector: jax.Array) -> Trial:
        return Trial(policy.kl(outputs_of(vector), old).mean(), *(surrogates(vector) - before))

    def acceptable(trial: Trial) -> jax.Array:
        # One noisy batch has no veto over an average of several.
        gains = (weight > 0) | (trial.reward_gain - lam * trial.cost_change >= 0)
        return (trial.kl <= region) & gains

    search = line_search(trial_of, acceptable, theta, step, config)

    def agreement(one: jax.Array, other: jax.Array) -> jax.Array:
        return one @ other / jnp.maximum(jnp.linalg.norm(one) * jnp.linalg.norm(other), _TINY)

    report = {
        "kl": search.trial.kl,
        "step_fraction": search.fraction,
        "reward_gain": search.trial.reward_gain,
        "cost_change": search.trial.cost_change,
        "cost_agreement": agreement(past.cost, b),
        "reward_agreement": agreement(past.reward, g),
    }
    return unflatten(search.theta), now, report
