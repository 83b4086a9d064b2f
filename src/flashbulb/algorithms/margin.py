"""How far below the limit to aim, so that an iteration exceeds it no more often than the user allows.

Adaptive conformal inference (Gibbs and Candes, 2021) applied to the cost limit: the margin grows after an iteration
that exceeds the limit and shrinks after one that does not, in a proportion that balances when the frequency of the
former is the one asked for. It needs no model of the noise, only an actuator that is not saturated.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import Metrics
from flashbulb.batch import Array
from flashbulb.config import IntegralConfig, MarginConfig


class ObservedNoise(NamedTuple):
    """How much J_C varies from one iteration to the next.

    Half the mean square of successive differences is the variance of independent costs, and little of a slow trend is
    in it (von Neumann, 1941).
    """

    last_cost: jax.Array  # ()
    variance: jax.Array  # () smoothed

    def after(self, cost: Array, counts: jax.Array, smooth: float) -> ObservedNoise:
        seen = jnp.where(counts, (cost - self.last_cost) ** 2 / 2, 0.0)
        return ObservedNoise(jnp.asarray(cost, jnp.float32), smooth * self.variance + (1 - smooth) * seen)


class Margin(NamedTuple):
    z: jax.Array  # () the margin in standard deviations of J_C
    standard_error: jax.Array  # () smoothed
    reached: jax.Array  # () 1 once J_C has reached d - u, from above or from below; till then 0 (above) or -1 (below)
    steps: jax.Array  # ()
    observed: Any = ()  # ObservedNoise, if the margin is in units of it

    @classmethod
    def start(cls, violations: float, config: MarginConfig) -> Margin:
        z = 0.0
        if config.start != "zero" and violations < 0.5:
            share = violations / 4 if config.start == "cautious" else violations
            z = NormalDist().inv_cdf(1 - share) if share > 0 else config.maximum
        observed = ObservedNoise(jnp.float32(0), jnp.float32(0)) if config.noise == "observed" else ()
        return cls(jnp.float32(min(z, config.maximum)), jnp.float32(0), jnp.float32(0), jnp.int32(0), observed)


def margin_step(
    state: Margin, cost: Array, standard_error: Array, limit: float, violations: float, config: MarginConfig
) -> tuple[Margin, jax.Array, Metrics]:
    """The margin u = z * standard deviation, after z <- z + rate (1[J_C > d] - violations).

    z does not move until J_C has been on both sides of d - u. Before that it would wind up in the costly iterations of
    an agent that starts above, or run down in the safe ones of a robot that cannot walk yet, and neither says anything
    about noise. u is at most `share` of the limit. The standard error says too little where a step changes the cost by
    more than sampling does, as that of a robot that falls or not; hence observed noise, which counts as z does.
    """
    smooth = config.smooth * state.standard_error + (1 - config.smooth) * standard_error
    error = jnp.where(state.steps == 0, standard_error, smooth)
    deviation, observed = error, state.observed
    if config.noise == "observed":
        observed = observed.after(cost, state.reached > 0, config.smooth)
        deviation = jnp.maximum(error, jnp.sqrt(observed.variance))
    reached = _reached(state, cost <= limit - jnp.minimum(state.z * deviation, config.share * limit))
    z = jnp.clip(state.z + (reached > 0) * config.rate * ((cost > limit) - violations), 0.0, config.maximum)
    u = jnp.minimum(z * deviation, config.share * limit)
    return Margin(z, error, reached, state.steps + 1, observed), u, {"margin": u, "margin_z": z}


def _reached(state: Margin, below: jax.Array) -> jax.Array:
    """`Margin.reached` after an iteration that was below the aim, or not."""
    side = -jnp.asarray(below, jnp.float32)
    crossed = (state.reached > 0) | ((state.steps > 0) & (side != state.reached))
    return jnp.where(crossed, jnp.float32(1), side)


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
