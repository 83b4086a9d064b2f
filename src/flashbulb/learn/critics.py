"""Value networks, stacked: entry 0 estimates V_R, the others V_C. One scan trains them all."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from flashbulb.config import CriticConfig
from flashbulb.learn.networks import Network, forward, init_network


class Critics(NamedTuple):
    networks: Network  # every array has a leading axis: V_R, V_C, ...
    optimiser: Any


def _optimiser(config: CriticConfig) -> optax.GradientTransformation:
    # The step size is applied outside, where it can decay.
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.scale_by_adam())


def init_critics(key: jax.Array, observation_size: int, cost_critics: int, config: CriticConfig) -> Critics:
    keys = jax.random.split(key, 1 + cost_critics)
    networks = jax.vmap(lambda k: init_network(k, (observation_size, *config.hidden, 1)))(keys)
    return Critics(networks, jax.vmap(_optimiser(config).init)(networks))


def values(critics: Critics, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(V_R, V_C) at each observation; of several cost critics the maximum, against underestimation."""
    all_values = jax.vmap(forward, in_axes=(0, None))(critics.networks, observations)[..., 0]
    return all_values[0], all_values[1:].max(axis=0)


def fit(
    critics: Critics,
    observations: jax.Array,
    targets: jax.Array,
    key: jax.Array,
    learning_rate: jax.Array | float,
    config: CriticConfig,
) -> tuple[Critics, jax.Array]:
    """Regress the stacked critics on `targets` (critics, states) by shuffled minibatches; mean loss of each.

    A remainder that fills no minibatch is left to the next pass's shuffle.
    """
    optimiser = _optimiser(config)
    states = len(observations)
    size = min(config.minibatch, states)

    def loss(network: Network, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        error = jnp.mean((forward(network, x)[..., 0] - y) ** 2)
        penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network))
        return error + config.l2 * penalty, error

    def step(critics: Critics, rows: jax.Array) -> tuple[Critics, jax.Array]:
        x, y = observations[rows], targets[:, rows]
        grads, error = jax.vmap(jax.grad(loss, has_aux=True), in_axes=(0, None, 0))(critics.networks, x, y)
        direction, state = jax.vmap(optimiser.update)(grads, critics.optimiser)
        networks = jax.tree.map(lambda p, d: p - learning_rate * d, critics.networks, direction)
        return Critics(networks, state), error

    def one_pass(critics: Critics, pass_key: jax.Array) -> tuple[Critics, jax.Array]:
        order = jax.random.permutation(pass_key, states)
        rows = order[: states // size * size].reshape(-1, size)
        critics, errors = jax.lax.scan(step, critics, rows)
        return critics, errors.mean(axis=0)

    critics, errors = jax.lax.scan(one_pass, critics, jax.random.split(key, config.passes))
    return critics, errors.mean(axis=0)
