"""`descend` of `proximal.py` for the losses of `proximal_loss.py`: compiled loops on the host in the place of JAX.

Twice as fast (docs/notes/performance_log.md); like the critics' fits it leaves the lock of Python to others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from flashbulb.algorithms.actor import Actor, HostStep, Metrics, StepInputs, host_generator
from flashbulb.algorithms.actor_fit import Seen, policy_vector, visit, work_for
from flashbulb.algorithms.distribution_slopes import Sampled
from flashbulb.algorithms.policy import Categorical, Policy
from flashbulb.algorithms.proximal_loss import ProximalLoss
from flashbulb.algorithms.small_network import blas, read_only
from flashbulb.batch import ActorBatch, Array
from flashbulb.config import ProximalConfig


class HostDescent(NamedTuple):
    actor: Actor
    kl: np.float32  # after the last pass
    passes: np.int32


def host_step(policy: Policy, config: ProximalConfig, loss: Callable[[StepInputs], ProximalLoss]) -> HostStep:
    """The step of an actor that has nothing but a loss."""

    def run(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        rng = host_generator(inputs.key)
        descent = descend_on_host(policy, loss(inputs), actor, inputs, config, rng)
        return descent.actor, {"kl": descent.kl, "actor_passes": descent.passes}

    return HostStep(run)


def loss_of(
    advantage: Array,
    cost_advantage: Array = None,
    *,
    clip: Any = np.inf,
    kl_weight: Any = 0.0,
    near: Any = np.inf,
    kappa: Any = 0.0,
    c: Any = 0.0,
) -> ProximalLoss:
    """A loss in single precision; what is left out has no effect."""
    price = np.empty(0, np.float32) if cost_advantage is None else cost_advantage
    numbers = (np.float32(x) for x in (clip, kl_weight, near, kappa, c))
    return ProximalLoss(read_only(advantage), read_only(price), *numbers)


_NOTHING = loss_of(np.empty(0))


def descend_on_host(
    policy: Policy,
    loss: ProximalLoss,
    actor: Actor,
    inputs: StepInputs,
    config: ProximalConfig,
    rng: np.random.Generator,
) -> HostDescent:
    """Adam on shuffled minibatches, pass after pass, until the policy is further than `kl` from where it began."""
    clipping, adam = actor.optimiser
    states = len(inputs.batch.observations)
    size = min(config.minibatch, states)
    numbers = np.float32(inputs.learning_rate), np.float32(config.max_grad_norm)
    here = HostPolicy(policy, actor.params, inputs.batch, size, adam)
    kl, passes = np.float32(0), 0
    # With more threads BLAS would split large products among cores, and add in another order on another machine.
    with blas().limit(limits=1):
        here.begin()
        while passes < config.passes and kl <= config.kl:
            batches = rng.permutation(states)[: states // size * size].reshape(-1, size)
            kl, passes = here.descend(loss, batches, *numbers), passes + 1
    return HostDescent(Actor(_to_tree(here.vector, actor.params), (clipping, here.adam(adam))), kl, np.int32(passes))


def host_kl(policy: Policy, params: Any, began: Any, batch: ActorBatch) -> np.float32:
    """Mean D(params || began) over the states of a batch."""
    here = HostPolicy(policy, began, batch, min(64, len(batch.observations)))
    with blas().limit(limits=1):
        here.begin()
        here.vector[:] = _to_vector(params)
        return here.look()


class HostPolicy:
    """A policy's parameters as one vector that changes in place, and the states on which it learns."""

    def __init__(self, policy: Policy, params: Any, batch: ActorBatch, block: int, adam: Any = None) -> None:
        states, discrete = len(batch.observations), None
        if isinstance(policy, Categorical):
            network, discrete = params, True
            actions = np.eye(policy.size, dtype=np.float32)[batch.actions.astype(np.int64)]
        else:
            network, actions = params.mean, batch.actions
        sizes = (network[0].weight.shape[0], *(len(layer.bias) for layer in network))
        self.vector = _to_vector(params)
        self.mean, self.square = (np.zeros_like(self.vector) for _ in range(2))
        self.count = 0
        if adam is not None:
            self.mean, self.square, self.count = _to_vector(adam.mu), _to_vector(adam.nu), int(adam.count)
        self._views, self._gradient = (policy_vector(v, sizes) for v in (self.vector, np.empty_like(self.vector)))
        self._work = work_for(sizes, block)
        self._seen = Seen(np.zeros((states, sizes[-1]), np.float32), np.zeros(states, np.float32))
        known = read_only(batch.observations), read_only(actions), read_only(batch.log_prob)
        self._sampled = Sampled(*known, self._seen.outputs.copy(), self._views.log_std.copy(), discrete)
        # All states in blocks, of which the last overlaps the one before it.
        self._all = np.minimum(np.arange(0, states, block), states - block)[:, None] + np.arange(block)

    def begin(self) -> None:
        """From now on divergences are from the policy as it is."""
        self.look()
        self._sampled = self._sampled._replace(
            began=self._seen.outputs.copy(), began_log_std=self._views.log_std.copy()
        )

    def look(self) -> np.float32:
        """Mean divergence from where it began."""
        return self.descend(_NOTHING, self._all[:0], np.float32(0), np.float32(0))

    def descend(
        self, loss: ProximalLoss, batches: np.ndarray, learning_rate: np.float32, max_grad_norm: np.float32
    ) -> np.float32:
        """A step per row of `batches`; mean divergence after them from where it began."""
        moments, steps = (self.mean, self.square, self.count), len(batches)
        rows = np.concatenate([batches, self._all])
        data = self._work, self._sampled, loss, rows, steps, self._seen
        visit(self._views, self._gradient, *moments, *data, learning_rate, max_grad_norm)
        self.count += steps
        return np.float32(self._seen.kl.mean(dtype=np.float64))

    def adam(self, like: Any) -> Any:
        """The optimiser's state after the steps."""
        moments = {"mu": _to_tree(self.mean, like.mu), "nu": _to_tree(self.square, like.nu)}
        return like._replace(count=np.asarray(self.count, np.int32), **moments)


def _to_vector(tree: Any) -> np.ndarray:
    """The leaves one after the other, a copy."""
    return np.concatenate([np.asarray(leaf, np.float32).ravel() for leaf in jax.tree.leaves(tree)])


def _to_tree(vector: np.ndarray, like: Any) -> Any:
    """The way back, into the shapes of `like`."""
    leaves, tree = jax.tree.flatten(like)
    parts = np.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return jax.tree.unflatten(tree, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])
