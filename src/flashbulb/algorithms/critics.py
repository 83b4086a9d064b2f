"""Value networks, stacked: entry 0 estimates V_R, the others V_C, those of one cost after those of another. JAX
evaluates them, `critic_fit.py` fits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from flashbulb.algorithms.networks import Network, forward, init_network
from flashbulb.config import CriticConfig

Each = Callable[[Callable[[int], float], Iterable[int]], Iterator[float]]


class Critics(NamedTuple):
    networks: Network  # every array has a leading axis: V_R, V_C, ...
    optimiser: optax.ScaleByAdamState  # likewise


def init_critics(key: jax.Array, observation_size: int, cost_critics: int, config: CriticConfig) -> Critics:
    keys = jax.random.split(key, 1 + cost_critics)
    each = [init_network(k, (observation_size, *config.hidden, 1)) for k in keys]
    numbers: Any = jnp if isinstance(key, jax.core.Tracer) else np  # JAX's if only shapes are asked for
    networks = jax.tree.map(lambda *leaves: jnp.asarray(numbers.stack(leaves)), *each)
    moments = jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape, leaf.dtype)), networks)
    return Critics(networks, optax.ScaleByAdamState(jnp.asarray(np.zeros(len(each), np.int32)), moments, moments))


def values(critics: Critics, observations: jax.Array, several: int = 0) -> tuple[jax.Array, jax.Array]:
    """(V_R, V_C) at each observation; of several critics of a cost the maximum, against underestimation.

    With `several` named costs V_C has their axis, the last.
    """
    all_values = jax.vmap(forward, in_axes=(0, None))(critics.networks, observations)[..., 0]
    if several:
        by_cost = all_values[1:].reshape(several, -1, *all_values.shape[1:])
        return all_values[0], jnp.moveaxis(by_cost.max(axis=1), 0, -1)
    return all_values[0], all_values[1:].max(axis=0)


def fit(
    critics: Critics,
    observations: np.ndarray,
    targets: np.ndarray,
    rng: np.random.Generator,
    learning_rate: float | np.floating,
    config: CriticConfig,
    each: Each = map,
) -> tuple[Critics, np.ndarray]:
    """Regress the critics on `targets` (critics, states) by shuffled minibatches; mean loss of each.

    A remainder that fills no minibatch is left to the next pass's shuffle. The critics do not depend on each other:
    `each` may be the `map` of a pool of threads.
    """
    states = len(observations)
    size = min(config.minibatch, states)
    passes = [rng.permutation(states)[: states // size * size] for _ in range(config.passes)]
    batches = np.concatenate(passes).reshape(-1, size)
    if config.backend == "optax":
        numbers = config.l2, config.max_grad_norm
        return _fit_optax(critics, observations, targets, batches, np.float32(learning_rate), *numbers)
    return _fit_compiled(critics, observations, targets, batches, learning_rate, config, each)


@partial(jax.jit, static_argnames=("l2", "max_grad_norm"))
def _fit_optax(
    critics: Critics,
    observations: jax.Array,
    targets: jax.Array,
    batches: jax.Array,
    learning_rate: jax.Array,
    l2: float,
    max_grad_norm: float,
) -> tuple[Critics, jax.Array]:
    """The plain way, for platforms where the compiled one fails and for comparison with it."""
    adam, clip = optax.scale_by_adam(), optax.clip_by_global_norm(max_grad_norm)

    def fit_one(network: Network, moments: Any, target: jax.Array) -> tuple[Network, Any, jax.Array]:
        def loss(network: Network, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
            error = jnp.mean((forward(network, observations[rows])[:, 0] - target[rows]) ** 2)
            return error + l2 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network)), error

        def step(carry: tuple[Network, Any], rows: jax.Array) -> tuple[tuple[Network, Any], jax.Array]:
            network, moments = carry
            gradient, error = jax.grad(loss, has_aux=True)(network, rows)
            gradient, _ = clip.update(gradient, clip.init(network))
            direction, moments = adam.update(gradient, moments)
            return (jax.tree.map(lambda p, d: p - learning_rate * d, network, direction), moments), error

        (network, moments), errors = jax.lax.scan(step, (network, moments), batches)
        return network, moments, errors.mean()

    networks, optimiser, losses = jax.vmap(fit_one)(critics.networks, critics.optimiser, targets)
    return Critics(networks, optimiser), losses


def _fit_compiled(
    critics: Critics,
    observations: np.ndarray,
    targets: np.ndarray,
    batches: np.ndarray,
    learning_rate: float | np.floating,
    config: CriticConfig,
    each: Each,
) -> tuple[Critics, np.ndarray]:
    """The same by compiled loops around BLAS, two to three times as fast."""
    # A trained policy has no need of a compiler.
    from flashbulb.algorithms.critic_fit import Settings, regress
    from flashbulb.algorithms.small_network import blas

    settings = Settings(np.float32(learning_rate), np.float32(config.l2), np.float32(config.max_grad_norm))
    sizes = (observations.shape[1], *config.hidden, 1)
    adam = critics.optimiser
    vectors, means, squares = _rows(critics.networks), _rows(adam.mu), _rows(adam.nu)
    counts = np.asarray(adam.count)

    def fit_one(c: int) -> float:
        moments = means[c], squares[c], int(counts[c])
        return regress(vectors[c], *moments, sizes, observations, targets[c], batches, settings)

    # With more threads BLAS would split large products among cores, and add in another order on another machine.
    with blas().limit(limits=1):
        losses = np.array(list(each(fit_one, range(len(vectors)))), np.float32)
    moved = adam._replace(count=counts + len(batches), mu=_stack(means, adam.mu), nu=_stack(squares, adam.nu))
    return Critics(_stack(vectors, critics.networks), moved), losses


def _rows(networks: Network) -> np.ndarray:
    """Stacked networks as one row of parameters each, a copy."""
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(networks)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _stack(rows: np.ndarray, like: Any) -> Any:
    """The way back, into the shapes of `like`."""
    leaves, tree = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size // len(leaf) for leaf in leaves])
    parts = np.split(rows, ends[:-1], axis=1)
    return jax.tree.unflatten(tree, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])
