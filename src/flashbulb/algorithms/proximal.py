"""PPO: clipped gradient steps, and the minibatch descent that CUP's projection shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from flashbulb.algorithms.actor import Actor, ActorStep, HostStep, Metrics, StepInputs, lagrangian_advantage
from flashbulb.algorithms.host_descent import host_step, loss_of
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal_loss import ProximalLoss
from flashbulb.batch import ActorBatch
from flashbulb.config import Config, ProximalConfig


class Descent(NamedTuple):
    actor: Actor
    kl: jax.Array  # after the last pass
    passes: jax.Array


def actor_optimiser(config: ProximalConfig) -> optax.GradientTransformation:
    # The step size is applied outside, where it can decay.
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.scale_by_adam())


def clipped_loss(
    policy: Policy, params: Any, batch: ActorBatch, advantage: jax.Array, config: ProximalConfig
) -> jax.Array:
    """-E[min(ratio A, clip(ratio) A)]."""
    log_prob = policy.log_prob(policy.outputs(params, batch.observations), batch.actions)
    ratio = jnp.exp(log_prob - batch.log_prob)
    bounded = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    return -jnp.minimum(ratio * advantage, bounded * advantage).mean()


def proximal_step(policy: Policy, actor: Actor, inputs: StepInputs, lam: jax.Array, config: ProximalConfig) -> Descent:
    """PPO on the Lagrangian advantage, at a fixed multiplier."""
    batch = inputs.batch
    advantage = lagrangian_advantage(batch.reward_advantage, batch.cost_advantage, lam)

    def loss(params: Any, rows: jax.Array) -> jax.Array:
        return clipped_loss(policy, params, take(batch, rows), advantage[rows], config)

    return descend(policy, loss, actor, inputs, config)


def descend(
    policy: Policy,
    loss: Callable[[Any, jax.Array], jax.Array],
    actor: Actor,
    inputs: StepInputs,
    config: ProximalConfig,
) -> Descent:
    """Adam on shuffled minibatches, pass after pass, until the policy is further than `kl` from where it began.

    The KL is that of the trust region: D(pi || pi_k), summed over action dimensions, averaged over all states. A
    pass that is not taken costs nothing. A remainder that fills no minibatch is left to the next shuffle.
    """
    batch, learning_rate, key = inputs.batch, inputs.learning_rate, inputs.key
    optimiser = actor_optimiser(config)
    states = len(batch.observations)
    size = min(config.minibatch, states)
    began = policy.outputs(actor.params, batch.observations)

    def step(actor: Actor, rows: jax.Array) -> tuple[Actor, None]:
        direction, state = optimiser.update(jax.grad(loss)(actor.params, rows), actor.optimiser)
        params = jax.tree.map(lambda p, d: p - learning_rate * d, actor.params, direction)
        return Actor(params, state), None

    def one_pass(descent: Descent) -> Descent:
        order = jax.random.permutation(jax.random.fold_in(key, descent.passes), states)
        actor, _ = jax.lax.scan(step, descent.actor, order[: states // size * size].reshape(-1, size))
        kl = policy.kl(policy.outputs(actor.params, batch.observations), began).mean()
        return Descent(actor, kl, descent.passes + 1)

    def near(descent: Descent) -> jax.Array:
        return (descent.passes < config.passes) & (descent.kl <= config.kl)

    return jax.lax.while_loop(near, one_pass, Descent(actor, jnp.float32(0), jnp.int32(0)))


def take(batch: ActorBatch, rows: jax.Array) -> ActorBatch:
    return jax.tree.map(lambda x: x[rows], batch)


def start_adam(params: Any, config: Config) -> Any:
    """Adam's state before the first step."""
    return actor_optimiser(config.proximal).init(params)


def ppo_actor(policy: Policy, config: Config) -> ActorStep:
    """PPO on the Lagrangian advantage."""

    def step(actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        descent = proximal_step(policy, actor, inputs, inputs.constraint.multiplier, config.proximal)
        return descent.actor, {"kl": descent.kl, "actor_passes": descent.passes}

    return step


def ppo_on_host(policy: Policy, config: Config) -> HostStep:
    """The same without JAX."""

    def loss(inputs: StepInputs) -> ProximalLoss:
        advantages = inputs.batch.reward_advantage, inputs.batch.cost_advantage
        return loss_of(lagrangian_advantage(*advantages, inputs.constraint.multiplier), clip=config.proximal.clip)

    return host_step(policy, config.proximal, loss)
