"""How far below the limit to aim, so that an iteration exceeds it no more often than the user allows.

Adaptive conformal inference (Gibbs and Candes, 2021) applied to the cost limit: the margin grows after an iteration
that exceeds the limit and shrinks after one that does not, in a proportion that balances when the frequency of the
former is the one asked for. It needs no model of the noise, only an actuator that is not saturated.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Metrics
from flashbulb.batch import Array
from flashbulb.config import IntegralConfig, MarginConfig


class Margin(NamedTuple):
    z: jax.Array  # () the margin in standard deviations of J_C
    standard_error: jax.Array  # () smoothed
    reached: jax.Array  # () 1 once J_C has been where the loop aims; before that the violations say nothing about noise
    steps: jax.Array  # ()
    last_cost: jax.Array  # ()
    variance: jax.Array  # () of J_C between successive iterations, smoothed

    @classmethod
    def start(cls, violations: float, config: MarginConfig) -> Margin:
        z = 0.0
        if config.start == "quantile" and violations < 0.5:
            z = NormalDist().inv_cdf(1 - violations) if violations > 0 else config.maximum
        nothing = jnp.float32(0)
        return cls(jnp.float32(min(z, config.maximum)), nothing, nothing, jnp.int32(0), nothing, nothing)


def margin_step(
    state: Margin, cost: Array, standard_error: Array, limit: float, violations: float, config: MarginConfig
) -> tuple[Margin, jax.Array, Metrics]:
    """The margin u = z * standard deviation, after z <- z + rate (1[J_C > d] - violations).

    z does not move until an iteration has reached d - u: in the costly ones before it would only wind up. u is at most
    `share` of the limit. Where a step can change the cost by more than sampling does, as that of a robot that falls or
    not, the standard error says too little; half the mean square of successive differences is the variance of
    independent costs, and what is left of a slow trend in it is small (von Neumann, 1941).
    """
    smooth = config.smooth * state.standard_error + (1 - config.smooth) * standard_error
    error = jnp.where(state.steps == 0, standard_error, smooth)
    seen = jnp.where(state.reached * state.steps > 0, (cost - state.last_cost) ** 2 / 2, 0.0)
    variance = config.smooth * state.variance + (1 - config.smooth) * seen
    deviation = jnp.maximum(error, jnp.sqrt(variance)) if config.noise == "observed" else error
    reached = jnp.maximum(state.reached, cost <= limit - jnp.minimum(state.z * deviation, config.share * limit))
    z = jnp.clip(state.z + reached * config.rate * ((cost > limit) - violations), 0.0, config.maximum)
    u = jnp.minimum(z * deviation, config.share * limit)
    after = Margin(z, error, reached, state.steps + 1, jnp.asarray(cost, jnp.float32), variance)
    return after, u, {"margin": u, "margin_z": z}


class ExcessIntegral(NamedTuple):
    """Integral action for learners whose step takes the constraint itself (CPO and its kin)."""

    value: jax.Array  # () what is added to the excess that the step sees
    saturated: jax.Array  # () 1 after a step for cost alone: the actuator could do no more

    @classmethod
    def start(cls) -> ExcessIntegral:
        return cls(jnp.float32(0), jnp.float32(0))


def integral_step(state: ExcessIntegral, excess: jax.Array, limit: float, config: IntegralConfig) -> ExcessIntegral:
    """The integral of the excess: bounded, and growing only while the steps could still do more (anti-windup)."""
    grown = jnp.where((state.saturated > 0) & (excess > 0), 0.0, config.gain * excess)
    return state._replace(value=jnp.clip(state.value + grown, -config.share * limit, config.share * limit))
