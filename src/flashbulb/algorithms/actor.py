"""What every actor's step has in common: its state, its inputs, its signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.batch import ActorBatch, Array, Constraint

Metrics = dict[str, Any]  # scalars, of JAX or of NumPy


class Actor(NamedTuple):
    """A policy's parameters and the state of their optimiser."""

    params: Any
    optimiser: Any  # Adam's state; empty for trust-region steps


class StepInputs(NamedTuple):
    """All that a step may depend on besides the actor."""

    batch: ActorBatch
    constraint: Constraint
    learning_rate: Array
    progress: Array  # share of the run that is done
    key: jax.Array


Function = TypeVar("Function", bound=Callable[..., Any])


def for_each_cost(function: Function, several: bool) -> Function:
    """A function of what belongs to one cost, applied to each of several: along the last axis of all arrays."""
    return jax.vmap(function, in_axes=-1, out_axes=-1) if several else function


# (actor, inputs) -> (the actor after the step, scalars to report). Pure, and compiled by `learner.py`.
ActorStep = Callable[[Actor, StepInputs], tuple[Actor, Metrics]]


class HostStep(NamedTuple):
    """A step that `learner.py` calls as it is, without JAX, beside the critics' fits: it should release Python's lock.

    The actor, the batch and the constraint are NumPy arrays; results may be of either kind.
    """

    run: ActorStep


def host_generator(key: jax.Array) -> np.random.Generator:
    """NumPy's random numbers of a JAX key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def lagrangian_advantage(reward_advantage: jax.Array, cost_advantage: jax.Array, lam: jax.Array) -> jax.Array:
    """(A_R - lambda A_C) / (1 + lambda): a large multiplier must not become a large step.

    Of several costs, (states, K) and (K,), the sums of lambda A_C and of lambda count.
    """
    price = lam * cost_advantage
    if jnp.ndim(lam):
        price, lam = price.sum(axis=-1), lam.sum()
    return (reward_advantage - price) / (1 + lam)
