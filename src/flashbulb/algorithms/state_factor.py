"""The balancing factor of the authors' code: one for every state, from the TD error of the very target it is in.

    delta_t = c^E + beta c^I + gamma V_C(s') - V_C(s),     beta_t = beta - alpha delta_t / c^I,

and at the end of each path beta <- 0.9 beta + 0.1 mean(beta_t), for each environment on its own. It differs from
Proposition 4.1: delta_t is what V_C falls short of its target, the *negative* of the bias, so beta falls where the
critic underestimates; it contains beta c^I; and nothing keeps beta above 0. Where c^I is not 0, beta_t c^I = beta c^I -
alpha delta_t: the per-state part only shortens the TD error by the factor 1 - alpha.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from flashbulb.batch import Array


def state_factors(
    beta: Array, extrinsic_delta: Array, intrinsic: Array, ended: Array, rate: float, smooth: float
) -> tuple[jax.Array, jax.Array]:
    """beta_t (time, env), and the smoothed beta (env,) after the batch, which ends all paths.

    `beta` (env,) is that before the batch, `extrinsic_delta` (time, env) the TD error without beta c^I.
    """

    def step(
        carry: tuple[jax.Array, jax.Array, jax.Array], now: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], jax.Array]:
        beta, total, count = carry
        delta, cost, end = now
        there = cost != 0
        own = jnp.where(there, beta - rate * (delta + beta * cost) / jnp.where(there, cost, 1.0), beta)
        total, count = total + own, count + 1
        smoothed = (1 - smooth) * beta + smooth * total / count
        return (jnp.where(end, smoothed, beta), jnp.where(end, 0.0, total), jnp.where(end, 0.0, count)), own

    zeros = jnp.zeros_like(intrinsic[0])
    (beta, total, count), factors = jax.lax.scan(
        step, (zeros + beta, zeros, zeros), (extrinsic_delta, intrinsic, jnp.asarray(ended, bool))
    )
    cut = (1 - smooth) * beta + smooth * total / jnp.maximum(count, 1)
    return factors, jnp.where(count > 0, cut, beta)
