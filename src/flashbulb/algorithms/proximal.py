"""Clipped gradient steps: PPO's objective, and the minibatch descent that it shares with CUP's projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from flashbulb.algorithms.policy import Policy
from flashbulb.config import ProximalConfig


class Actor(NamedTuple):
    params: Any
    optimiser: Any  # Adam's state; empty for trust-region steps


class ActorBatch(NamedTuple):
    """What an actor's step is judged by; one row per sampled state."""

    observations: jax.Array  # normalised
    actions: jax.Array
    log_prob: jax.Array  # under the policy that sampled
    reward_advantage: jax.Array
    cost_advantage: jax.Array


class Descent(NamedTuple):
    actor: Actor
    kl: jax.Array  # after the last pass
    passes: jax.Array


def actor_optimiser(config: ProximalConfig) -> optax.GradientTransformation:
    # The step size is applied outside, where it can decay.
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.scale_by_adam())


def lagrangian_advantage(reward_advantage: jax.Array, cost_advantage: jax.Array, lam: jax.Array) -> jax.Array:
    """(A_R - lambda A_C) / (1 + lambda): a large price of cost must not become a large step."""
    return (reward_advantage - lam * cost_advantage) / (1 + lam)


def clipped_loss(
    policy: Policy, params: Any, evidence: ActorBatch, advantage: jax.Array, config: ProximalConfig
) -> jax.Array:
    """-E[min(ratio A, clip(ratio) A)]."""
    log_prob = policy.log_prob(policy.outputs(params, evidence.observations), evidence.actions)
    ratio = jnp.exp(log_prob - evidence.log_prob)
    bounded = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    return -jnp.minimum(ratio * advantage, bounded * advantage).mean()


def proximal_step(
    policy: Policy,
    actor: Actor,
    evidence: ActorBatch,
    lam: jax.Array,
    learning_rate: jax.Array,
    key: jax.Array,
    config: ProximalConfig,
) -> Descent:
    """PPO on the Lagrangian advantage, at a fixed price of cost."""
    advantage = lagrangian_advantage(evidence.reward_advantage, evidence.cost_advantage, lam)

    def loss(params: Any, rows: jax.Array) -> jax.Array:
        return clipped_loss(policy, params, take(evidence, rows), advantage[rows], config)

    return descend(policy, loss, actor, evidence, learning_rate, key, config)


def descend(
    policy: Policy,
    loss: Callable[[Any, jax.Array], jax.Array],
    actor: Actor,
    evidence: ActorBatch,
    learning_rate: jax.Array,
    key: jax.Array,
    config: ProximalConfig,
) -> Descent:
    """Adam on shuffled minibatches, pass after pass, until the policy is further than `kl` from where it began.

    The KL is that of the trust region: D(pi || pi_k), summed over action dimensions, averaged over all states. A
    pass that is not taken costs nothing. A remainder that fills no minibatch is left to the next shuffle.
    """
    optimiser = actor_optimiser(config)
    states = len(evidence.observations)
    size = min(config.minibatch, states)
    began = policy.outputs(actor.params, evidence.observations)

    def step(actor: Actor, rows: jax.Array) -> tuple[Actor, None]:
        direction, state = optimiser.update(jax.grad(loss)(actor.params, rows), actor.optimiser)
        params = jax.tree.map(lambda p, d: p - learning_rate * d, actor.params, direction)
        return Actor(params, state), None

    def one_pass(descent: Descent) -> Descent:
        order = jax.random.permutation(jax.random.fold_in(key, descent.passes), states)
        actor, _ = jax.lax.scan(step, descent.actor, order[: states // size * size].reshape(-1, size))
        kl = policy.kl(policy.outputs(actor.params, evidence.observations), began).mean()
        return Descent(actor, kl, descent.passes + 1)

    def near(descent: Descent) -> jax.Array:
        return (descent.passes < config.passes) & (descent.kl <= config.kl)

    return jax.lax.while_loop(near, one_pass, Descent(actor, jnp.float32(0), jnp.int32(0)))


def take(evidence: ActorBatch, rows: jax.Array) -> ActorBatch:
    return jax.tree.map(lambda x: x[rows], evidence)
