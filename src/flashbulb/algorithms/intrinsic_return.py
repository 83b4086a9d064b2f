"""I, the intrinsic return that is taken off the limit (Theorem 2), in the units of each reading.

J_C and d are sums over an episode. Theorem 2 has a discounted sum from the start state, and the appendix derives it
from a mean over the discounted visitation, divided by 1 - gamma.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from flashbulb.batch import Array


def intrinsic_return(added: Array, mean: Array, ended: Array, length: Array, gamma: float, unit: str) -> jax.Array:
    """I of the batch's beta c^I, `added` (time, env) with its mean; `length` is the mean length of its episodes."""
    if unit == "episode":
        return jnp.asarray(mean * length)
    if unit == "start":
        return path_returns(added, ended, gamma).mean()
    return jnp.asarray(mean / (1 - gamma))


def path_returns(added: Array, ended: Array, gamma: float) -> jax.Array:
    """The discounted sum along each path from its first state, at every sample (time, env) of the path.

    A path is what the batch holds of an episode. The mean over samples thus weighs a path by its length, as the
    authors' code does; with a plain mean, the stumps that a batch cuts off would count as whole episodes.
    """

    def backwards(following: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        added_t, ended_t = step
        to_go = added_t + gamma * following * (1.0 - ended_t)
        return to_go, to_go

    _, to_go = jax.lax.scan(backwards, jnp.zeros_like(added[0]), (added, jnp.asarray(ended, added.dtype)), reverse=True)

    def forwards(
        path: tuple[jax.Array, jax.Array], step: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        first, value = path
        to_go_t, ended_t = step
        value = jnp.where(first, to_go_t, value)
        return (ended_t, value), value

    begin = jnp.ones(ended.shape[1], bool), jnp.zeros_like(added[0])
    return jax.lax.scan(forwards, begin, (to_go, jnp.asarray(ended, bool)))[1]
