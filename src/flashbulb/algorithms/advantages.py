"""Generalised advantage estimation over a batch of unequal, cut and finished trajectories."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def gae(
    signal: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    gamma: float,
    lam: float,
) -> jax.Array:
    """Advantages (time, member) of a reward or cost signal.

    `next_values[t]` is the value of the observation that followed step t *in the same episode*: of the final
    observation where the episode was truncated, of the next sample where the batch cuts it. Terminal states
    are worth 0. Nothing leaks across the end of an episode.
    """
    delta = signal + gamma * next_values * (1.0 - terminated) - values
    carry_on = gamma * lam * (1.0 - ended)

    def backwards(following: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta_t, carry_t = step
        advantage = delta_t + carry_t * following
        return advantage, advantage

    _, advantages = jax.lax.scan(backwards, jnp.zeros_like(delta[0]), (delta, carry_on), reverse=True)
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
