"""What every actor's step has in common: its state, its inputs, its signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from flashbulb.batch import ActorBatch, Array, Constraint

Metrics = dict[str, jax.Array]


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


# (actor, inputs) -> (the actor after the step, scalars to report). Pure, and compiled by `learner.py`.
ActorStep = Callable[[Actor, StepInputs], tuple[Actor, Metrics]]


def lagrangian_advantage(reward_advantage: jax.Array, cost_advantage: jax.Array, lam: jax.Array) -> jax.Array:
    """(A_R - lambda A_C) / (1 + lambda): a large multiplier must not become a large step."""
    return (reward_advantage - lam * cost_advantage) / (1 + lam)
