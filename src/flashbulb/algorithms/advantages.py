"""Values and advantages of a batch: generalised advantage estimation, extrinsic-intrinsic for cost (equation 6)."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.algorithms.actor import for_each_cost
from flashbulb.algorithms.critics import Critics, values
from flashbulb.algorithms.state_factor import state_factors
from flashbulb.batch import Array, Batch
from flashbulb.config import Config
from flashbulb.normaliser import FrozenNormaliser


def gae(
    signal: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    gamma: float,
    lam: float,
) -> jax.Array:
    """Advantages (time, env) of a reward or cost signal.

    `next_values[t]` is the value of the observation that followed step t *in the same episode*: of the final
    observation where the episode was truncated, of the next sample where the batch cuts it. Terminal states
    have value 0. Nothing leaks across the end of an episode.
    """
    delta = signal + gamma * next_values * (1.0 - terminated) - values
    decay = gamma * lam * (1.0 - ended)

    def backwards(following: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta_t, decay_t = step
        advantage = delta_t + decay_t * following
        return advantage, advantage

    _, advantages = jax.lax.scan(backwards, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)
    return advantages


def discounted_return(
    signal: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    gamma: float,
) -> jax.Array:
    """Discounted sum of the signal along the sampled trajectory, bootstrapped where it is cut.

    With lambda = 1 the values inside a trajectory cancel and only the bootstrap remains.
    """
    return values + gae(signal, values, next_values, terminated, ended, gamma, 1.0)


class Estimates(NamedTuple):
    """(time, env) each; what belongs to a cost is (time, env, K) with several costs."""

    v_r: jax.Array
    v_c: jax.Array
    a_r: jax.Array
    a_c: jax.Array  # A_C^EI
    sampled_bias: jax.Array  # V_C - G_C
    balance_bias: jax.Array  # eps_n of the balancing factor
    added: jax.Array  # beta c^I
    next_beta: jax.Array | None  # (env,) if the factor is the authors' (`state_factor.py`)


def estimate_advantages(critics: Critics, batch: Batch, rewards: jax.Array, config: Config) -> Estimates:
    """Values and advantages of every sample; `rewards` are those to learn from."""
    several = cost_count(batch.costs)
    v_r, v_c = values(critics, batch.normalise(batch.observations), several)
    next_v_r, next_v_c = values(critics, batch.normalise(batch.next_observations), several)
    ends = batch.terminated, batch.ended
    extrinsic = batch.costs if batch.learned_costs is None else batch.learned_costs
    added, next_beta = batch.beta * batch.intrinsic, None
    if config.balance.factor == "state":
        delta = gae(extrinsic, v_c, next_v_c, *ends, config.cost_gamma, 0.0)
        numbers = config.balance.rate, config.balance.smooth
        factors, next_beta = state_factors(batch.beta, delta, batch.intrinsic, batch.ended, *numbers)
        added = factors * batch.intrinsic
    a_r = gae(rewards, v_r, next_v_r, *ends, config.gamma, config.lam)

    def of_cost(
        extrinsic: jax.Array, added: jax.Array, v_c: jax.Array, next_v_c: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        ends = batch.terminated, batch.ended
        if config.cost_after_end == "mean":  # as if the episode had gone on
            next_v_c, ends = jnp.where(batch.terminated, v_c.mean(), next_v_c), (jnp.zeros_like(ends[0]), batch.ended)
        a_c = gae(extrinsic + added, v_c, next_v_c, *ends, config.cost_gamma, config.cost_lam)
        # eps_n = Q_n - Q*, with the sampled discounted extrinsic cost standing in for Q* (section 4.3).
        sampled_bias = v_c - discounted_return(extrinsic, v_c, next_v_c, *ends, config.cost_gamma)
        balance_bias = sampled_bias
        if config.balance.bias == "td":
            balance_bias = -gae(extrinsic, v_c, next_v_c, *ends, config.cost_gamma, 0.0)
        return a_c, sampled_bias, balance_bias

    a_c, sampled_bias, balance_bias = for_each_cost(of_cost, several > 0)(extrinsic, added, v_c, next_v_c)
    return Estimates(v_r, v_c, a_r, a_c, sampled_bias, balance_bias, added, next_beta)


def cost_count(costs: Array) -> int:
    """How many named costs an array (time, env, K) has; 0 for one cost, (time, env)."""
    return int(costs.shape[2]) if jnp.ndim(costs) == 3 else 0


@functools.partial(jax.jit, static_argnames="gamma")
def cost_to_go(
    critics: Critics,
    observations: Array,
    next_observations: Array,
    costs: Array,
    ends: tuple[Array, Array],
    normalise: FrozenNormaliser,
    gamma: float,
) -> jax.Array:
    """G_C: the discounted extrinsic cost along the sampled trajectory, V_C where it is cut; `ends` are `terminated`
    and `ended`.

    The memory's criterion for noisy costs. V_C would be an expected cumulative cost as well, but it is the one whose
    underestimation is to be corrected, and it contains beta c^I: the memory would reinforce itself.
    """
    several = cost_count(costs)
    _, v_c = values(critics, normalise(observations), several)
    _, next_v_c = values(critics, normalise(next_observations), several)

    def of_cost(costs: jax.Array, v_c: jax.Array, next_v_c: jax.Array) -> jax.Array:
        return discounted_return(costs, v_c, next_v_c, *ends, gamma)

    return for_each_cost(of_cost, several > 0)(costs, v_c, next_v_c)


def standardise(advantage: jax.Array) -> jax.Array:
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def centre(advantage: jax.Array) -> jax.Array:
    """Zero mean. Cost advantages keep their scale, because the constraint is in the same units."""
    return advantage - advantage.mean()


def explained_variance(values: jax.Array, bias: jax.Array) -> jax.Array:
    """Share of the variance of the sampled return that the values predict; `bias` is values minus that return."""
    return 1 - bias.var() / jnp.maximum((values - bias).var(), 1e-8)


def mean_where_unsafe(values: jax.Array, costs: Array) -> jax.Array:
    """Mean over the states with a positive cost; 0 if there are none."""
    unsafe = costs > 0
    return jnp.where(unsafe, values, 0).sum() / jnp.maximum(unsafe.sum(), 1)
