"""Values and advantages of a batch, extrinsic-intrinsic for cost (equation 6 and below it)."""

from __future__ import annotations

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
    cost_bias: jax.Array  # eps_n = V_C - G_C


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
    true_cost = discounted_return(sample.costs, v_c, next_v_c, *ends, config.cost_gamma)
    return Estimates(v_r, v_c, a_r, a_c, v_c - true_cost)


def standardise(advantage: jax.Array) -> jax.Array:
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def centre(advantage: jax.Array) -> jax.Array:
    """Costs keep their scale, to which the constraint's applies; only actions are compared, never states."""
    return advantage - advantage.mean()


def where_unsafe(values_: jax.Array, costs: Array) -> jax.Array:
    """Mean over the states that cost something; 0 where none did."""
    unsafe = costs > 0
    return jnp.where(unsafe, values_, 0).sum() / jnp.maximum(unsafe.sum(), 1)
