"""Values and advantages of a batch, extrinsic-intrinsic for cost (equation 6 and below it)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import Config
from flashbulb.learn.advantages import discounted_return, gae
from flashbulb.learn.critics import Critics, values
from flashbulb.normaliser import Affine

Array = Any  # of JAX or of NumPy


class Sample(NamedTuple):
    """What an update needs of a batch; every array is (time, member, ...)."""

    observations: Array
    next_observations: Array  # the final observation where an episode ended
    actions: Array
    rewards: Array
    costs: Array  # extrinsic
    terminated: Array
    ended: Array  # terminated or truncated
    intrinsic: Array  # c^I


class Estimates(NamedTuple):
    """(time, member) each."""

    v_r: jax.Array
    v_c: jax.Array
    a_r: jax.Array
    a_c: jax.Array  # A_C^EI
    cost_bias: jax.Array  # V_C - G_C
    balance_bias: jax.Array  # eps_n of the balancing factor


def estimate(
    critics: Critics, sample: Sample, rewards: jax.Array, beta: jax.Array, normalise: Affine, config: Config
) -> Estimates:
    v_r, v_c = values(critics, normalise(sample.observations))
    next_v_r, next_v_c = values(critics, normalise(sample.next_observations))
    ends = sample.terminated, sample.ended
    costs = sample.costs + beta * sample.intrinsic
    a_r = gae(rewards, v_r, next_v_r, *ends, config.gamma, config.lam)
    a_c = gae(costs, v_c, next_v_c, *ends, config.cost_gamma, config.cost_lam)
    # eps_n = Q_n - Q*, with the sampled discounted extrinsic cost standing in for Q* (section 4.3).
    cost_bias = v_c - discounted_return(sample.costs, v_c, next_v_c, *ends, config.cost_gamma)
    balance_bias = cost_bias
    if config.balance.bias == "td":
        balance_bias = -gae(sample.costs, v_c, next_v_c, *ends, config.cost_gamma, 0.0)
    return Estimates(v_r, v_c, a_r, a_c, cost_bias, balance_bias)


@functools.partial(jax.jit, static_argnames="gamma")
def cost_to_go(
    critics: Critics,
    observations: Array,
    next_observations: Array,
    costs: Array,
    terminated: Array,
    ended: Array,
    normalise: Affine,
    gamma: float,
) -> jax.Array:
    """G_C: the discounted extrinsic cost along the sampled trajectory, V_C where it is cut.

    The memory's criterion for noisy costs. V_C itself would also be an expected cumulative cost, but the one whose
    underestimation is to be mended, and one that contains beta c^I: the memory would feed on itself.
    """
    _, v_c = values(critics, normalise(observations))
    _, next_v_c = values(critics, normalise(next_observations))
    return discounted_return(costs, v_c, next_v_c, terminated, ended, gamma)


def standardise(advantage: jax.Array) -> jax.Array:
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def centre(advantage: jax.Array) -> jax.Array:
    """Costs keep their scale, to which the constraint's applies; only actions are compared, never states."""
    return advantage - advantage.mean()


def explained(values_: jax.Array, bias: jax.Array) -> jax.Array:
    """Share of the variance of the sampled return that the values predict, before they are fitted to it."""
    return 1 - bias.var() / jnp.maximum((values_ - bias).var(), 1e-8)


def where_unsafe(values_: jax.Array, costs: Array) -> jax.Array:
    """Mean over the states that cost something; 0 where none did."""
    unsafe = costs > 0
    return jnp.where(unsafe, values_, 0).sum() / jnp.maximum(unsafe.sum(), 1)
