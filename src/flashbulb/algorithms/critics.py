"""Value networks, stacked: entry 0 estimates V_R, the others V_C. JAX evaluates them, `regression.py` fits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
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
    networks = jax.vmap(lambda k: init_network(k, (observation_size, *config.hidden, 1)))(keys)
    return Critics(networks, jax.vmap(optax.scale_by_adam().init)(networks))


def values(critics: Critics, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(V_R, V_C) at each observation; of several cost critics the maximum, against underestimation."""
    all_values = jax.vmap(forward, in_axes=(0, None))(critics.networks, observations)[..., 0]
    return all_values[0], all_values[1:].max(axis=0)


def fit(
    critics: Critics,
    observations: np.ndarray,
    targets: np.ndarray,
    rng: np.random.Generator,
    learning_rate: float,
    config: CriticConfig,
    each: Each = map,
) -> tuple[Critics, np.ndarray]:
    """Regress the critics on `targets` (critics, states) by shuffled minibatches; mean loss of each.

    A remainder that fills no minibatch is left to the next pass's shuffle. The critics do not depend on each other:
    `each` may be the `map` of a pool of threads.
    """
    from flashbulb.algorithms.critic_fit import Settings, blas, regress  # a trained policy has no need of a compiler

    states = len(observations)
    size = min(config.minibatch, states)
    passes = [rng.permutation(states)[: states // size * size] for _ in range(config.passes)]
    batches = np.concatenate(passes).reshape(-1, size)
    settings = Settings(np.float32(learning_rate), np.float32(config.l2), np.float32(config.max_grad_norm))
    sizes = (observations.shape[1], *config.hidden, 1)
    adam = critics.optimiser
    vectors, means, squares = _rows(critics.networks), _rows(adam.mu), _rows(adam.nu)
    counts = np.asarray(adam.count)

    def fit_one(c: int) -> float:
        moments = means[c], squares[c], int(counts[c])
        return regress(vectors[c], *moments, sizes, observations, targets[c], batches, settings)

    with blas().limit(limits=1):  # it would split large products among cores, and so add in another order elsewhere
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
