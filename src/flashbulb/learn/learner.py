"""A learner: networks, and the one jitted function that improves them from a batch, assembled from parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import Config
from flashbulb.learn.actors import actor_step_for, init_actor
from flashbulb.learn.budget import Schedule, reshaped_reward, simmer_step
from flashbulb.learn.critics import Critics, fit, init_critics
from flashbulb.learn.estimates import Sample, centre, estimate, standardise, where_unsafe
from flashbulb.learn.multipliers import Ascent, Pid, Report, ascent_step, pid_step
from flashbulb.learn.parts import Recipe
from flashbulb.learn.policy import Policy
from flashbulb.learn.proximal import Actor, Evidence
from flashbulb.normaliser import Affine

Array = Any  # of JAX or of NumPy

__all__ = ["Episodes", "LearnerState", "Sample", "Update", "init_learner", "make_update", "standardise"]


class LearnerState(NamedTuple):
    policy: Any
    critics: Critics
    optimiser: Any = ()  # the actor's
    multiplier: Any = ()  # Pid, Ascent, or nothing
    schedule: Any = ()  # of the budget in the state, where there is one


class Episodes(NamedTuple):
    """What an update needs of the batch's episodes."""

    cost: Array  # J_C(pi_k), undiscounted
    length: Array


class Update(NamedTuple):
    state: LearnerState
    balance_bias: jax.Array  # (time, member) eps_n, for the balancing factor
    report: Report


UpdateFunction = Callable[[LearnerState, Sample, Affine, Array, Episodes, Array, jax.Array], Update]


def init_learner(policy: Policy, observation_size: int, recipe: Recipe, config: Config, key: jax.Array) -> LearnerState:
    policy_key, critic_key = jax.random.split(key)
    actor = init_actor(policy, observation_size, recipe, config, policy_key)
    critics = init_critics(critic_key, observation_size, recipe.cost_critics, config.critic)
    multiplier: Any = ()
    if recipe.multiplier == "pid":
        multiplier = Pid.start(config.pid)
    elif recipe.multiplier == "ascent":
        multiplier = Ascent.start(config.ascent)
    schedule = () if recipe.augmentation == "none" else Schedule.start(first_budget(recipe, config))
    return LearnerState(actor.params, critics, actor.optimiser, multiplier, schedule)


def first_budget(recipe: Recipe, config: Config) -> float:
    """What an episode may cost before anything was learned."""
    return config.cost_limit * (config.budget.start if recipe.augmentation == "simmer" else 1.0)


def make_update(policy: Policy, recipe: Recipe, config: Config) -> UpdateFunction:
    """Lines 5 to 12 of Algorithm 1 as one compiled function.

    Its arguments: the learner's state, the sample, the frozen normaliser, beta, the episodes' means, the share of
    the run that is done, and a random key.
    """
    step_actor = actor_step_for(policy, recipe, config)

    @jax.jit
    def update(
        state: LearnerState,
        sample: Sample,
        normalise: Affine,
        beta: jax.Array,
        episodes: Episodes,
        progress: jax.Array,
        key: jax.Array,
    ) -> Update:
        rewards, schedule, scheduled = _budget(state, sample, episodes, recipe, config)
        seen = estimate(state.critics, sample, rewards, beta, normalise, config)

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic_return = beta * sample.intrinsic.mean() / (1 - config.cost_gamma)
        cost = episodes.cost + config.balance.margin * intrinsic_return
        excess = cost - config.cost_limit
        multiplier, lam, priced = _price(state, cost, recipe, config)

        observations, actions = _flat(normalise(sample.observations)), _flat(sample.actions)
        log_prob = policy.log_prob(policy.outputs(state.policy, observations), actions)
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(centre(seen.a_c))
        constraint = excess / episodes.length if config.trust_region.scale == "step" else excess
        actor, stepped = step_actor(
            Actor(state.policy, state.optimiser),
            Evidence(observations, actions, log_prob, a_r, a_c),
            constraint,
            lam,
            config.proximal.learning_rate * (1 - progress),
            jax.random.fold_in(key, 1),
        )
        targets = jnp.stack([_flat(seen.a_r + seen.v_r)] + [_flat(seen.a_c + seen.v_c)] * recipe.cost_critics)
        critic_rate = config.critic.learning_rate * (1 - progress)
        critics, losses = fit(state.critics, observations, targets, key, critic_rate, config.critic)

        measured = {
            "constraint": excess,
            "intrinsic_return": intrinsic_return,
            "cost_bias": seen.cost_bias.mean(),
            "cost_bias_unsafe": where_unsafe(seen.cost_bias, sample.costs),
            "cost_value": seen.v_c.mean(),
            "reward_loss": losses[0],
            "cost_loss": losses[1:].mean(),
            "entropy": policy.entropy(policy.outputs(actor.params, observations)).mean(),
        }
        after = LearnerState(actor.params, critics, actor.optimiser, multiplier, schedule)
        return Update(after, seen.balance_bias, stepped | priced | scheduled | measured)

    return update


def _budget(
    state: LearnerState, sample: Sample, episodes: Episodes, recipe: Recipe, config: Config
) -> tuple[jax.Array, Any, Report]:
    """The rewards to learn from, the schedule of the budget, and what to report of it."""
    if recipe.augmentation == "none":
        return sample.rewards, state.schedule, {}
    rewards = reshaped_reward(sample.rewards, sample.next_observations, config.budget)
    schedule = state.schedule
    if recipe.augmentation == "simmer":
        schedule = simmer_step(schedule, episodes.cost, config.cost_limit, config.budget)
    return rewards, schedule, {"budget": state.schedule.budget}


def _price(state: LearnerState, cost: jax.Array, recipe: Recipe, config: Config) -> tuple[Any, jax.Array, Report]:
    """The multiplier's state, lambda, and what to report of it. CPO's dual finds its own."""
    if recipe.multiplier == "pid":
        return pid_step(state.multiplier, cost, config.cost_limit, config.pid)
    if recipe.multiplier == "ascent":
        return ascent_step(state.multiplier, cost, config.cost_limit, config.ascent)
    return state.multiplier, jnp.float32(0), {}


def _flat(x: jax.Array) -> jax.Array:
    """(time, member, ...) -> (state, ...)."""
    return x.reshape(-1, *x.shape[2:])
