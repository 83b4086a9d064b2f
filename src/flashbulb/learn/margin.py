"""How far below the limit to aim, so that an iteration exceeds it no more often than the user allows."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import Config, IntegralConfig, MarginConfig


class Margin(NamedTuple):
    z: jax.Array  # () the margin in standard errors of J_C
    standard_error: jax.Array  # () smoothed
    closed: jax.Array  # () 1 once J_C has been where the loop aims: before that nothing is learned about noise
    steps: jax.Array  # ()

    @classmethod
    def start(cls, config: MarginConfig) -> Margin:
        if not config.quantile:
            return cls(*(jnp.float32(0) for _ in range(3)), jnp.int32(0))
        z = NormalDist().inv_cdf(1 - min(config.violations, 0.5)) if config.violations > 0 else config.largest
        return cls(jnp.float32(min(z, config.largest)), jnp.float32(0), jnp.float32(0), jnp.int32(0))


def margin_step(
    state: Margin, cost: jax.Array, standard_error: Any, config: Config
) -> tuple[Margin, jax.Array, dict[str, jax.Array]]:
    """The margin u = z se, and z moved as adaptive conformal inference does: z <- z + rate (1[J_C > d] - violations).

    z starts at the normal quantile, so that it has little left to learn, and moves from the first iteration on that
    reaches d - u: in the costly ones before it would only wind up.
    """
    own, limit = config.margin, config.cost_limit
    if own.violations >= 0.5:
        return state, jnp.float32(0), {"margin": jnp.float32(0), "standard_error": jnp.asarray(standard_error)}
    se = jnp.where(state.steps == 0, standard_error, own.smooth * state.standard_error + (1 - own.smooth) * standard_error)
    closed = jnp.maximum(state.closed, cost <= limit - jnp.minimum(state.z * se, own.share * limit))
    z = jnp.clip(state.z + closed * own.rate * ((cost > limit) - own.violations), 0.0, own.largest)
    u = jnp.minimum(z * se, own.share * limit)
    report = {"margin": u, "margin_z": z, "standard_error": jnp.asarray(standard_error)}
    return Margin(z, se, closed, state.steps + 1), u, report


class Integral(NamedTuple):
    value: jax.Array  # () what is added to the excess that CPO's step sees
    saturated: jax.Array  # () 1 after a step for cost alone: nothing more could be done

    @classmethod
    def start(cls) -> Integral:
        return cls(jnp.float32(0), jnp.float32(0))


def integral_step(state: Integral, excess: jax.Array, limit: float, config: IntegralConfig) -> jax.Array:
    """The integral of the excess: bounded, and growing only while the steps could still do more (no windup)."""
    grown = jnp.where((state.saturated > 0) & (excess > 0), 0.0, config.gain * excess)
    return jnp.clip(state.value + grown, -config.share * limit, config.share * limit)
