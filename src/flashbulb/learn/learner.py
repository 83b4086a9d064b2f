"""A learner: networks, and the function that improves them from a batch, assembled from compiled parts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.config import Config
from flashbulb.learn.actors import actor_step_for, init_actor
from flashbulb.learn.budget import Schedule, reshaped_reward, simmer_step
from flashbulb.learn.critics import Critics, fit, init_critics
from flashbulb.learn.estimates import Sample, centre, estimate, explained, standardise, where_unsafe
from flashbulb.learn.margin import Integral, Margin, integral_step, margin_step
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
    margin: Any = ()  # how far below the limit to aim
    integral: Any = ()  # of the excess, where CPO's steps follow it
    schedule: Any = ()  # of the budget in the state, where there is one


class Episodes(NamedTuple):
    """What an update needs of the batch's episodes."""

    cost: Array  # J_C(pi_k), undiscounted
    length: Array
    standard_error: Array = 0.0  # of `cost`


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
    return LearnerState(actor.params, critics, actor.optimiser, multiplier, Margin.start(config.margin), Integral.start(), schedule)


def first_budget(recipe: Recipe, config: Config) -> float:
    """What an episode may cost before anything was learned."""
    return config.cost_limit * (config.budget.start if recipe.augmentation == "simmer" else 1.0)


class Judged(NamedTuple):
    """What is known before anything is learned."""

    evidence: Evidence
    targets: jax.Array  # (critics, states)
    constraint: jax.Array  # c of the linear model
    lam: jax.Array
    multiplier: Any
    margin: Margin
    integral: jax.Array
    schedule: Any
    balance_bias: jax.Array
    report: Report


def make_update(policy: Policy, recipe: Recipe, config: Config) -> UpdateFunction:
    """Lines 5 to 12 of Algorithm 1: judge the sample, then improve the policy and fit the critics.

    Neither of the latter two needs the other, so they run side by side where there are threads for it; results do not
    depend on that. Arguments: the learner's state, the sample, the frozen normaliser, beta, the episodes' means, the
    share of the run that is done, and a random key.
    """
    step_actor = actor_step_for(policy, recipe, config)
    threads = config.threads or os.cpu_count() or 1
    recent: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=1 + config.critic.replay)

    @jax.jit
    def judge(state: LearnerState, sample: Sample, normalise: Affine, beta: Array, episodes: Episodes) -> Judged:
        rewards, schedule, scheduled = _budget(state, sample, episodes, recipe, config)
        seen = estimate(state.critics, sample, rewards, beta, normalise, config)

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic_return = beta * sample.intrinsic.mean() / (1 - config.cost_gamma)
        margin, kept, spared = margin_step(state.margin, episodes.cost, episodes.standard_error, config)
        cost = episodes.cost + jnp.maximum(config.balance.margin * intrinsic_return, kept)
        excess = cost - config.cost_limit
        multiplier, lam, priced = _price(state, cost, recipe, config)
        integral = integral_step(state.integral, excess, config.cost_limit, config.integral)
        constraint = excess + integral
        constraint = constraint / episodes.length if config.trust_region.scale == "step" else constraint

        observations, actions = _flat(normalise(sample.observations)), _flat(sample.actions)
        log_prob = policy.log_prob(policy.outputs(state.policy, observations), actions)
        scaled = standardise if config.cost_scale == "standard" and recipe.multiplier in ("pid", "ascent") else centre
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(scaled(seen.a_c))
        evidence = Evidence(observations, actions, log_prob, a_r, a_c)
        targets = jnp.stack([_flat(seen.a_r + seen.v_r)] + [_flat(seen.a_c + seen.v_c)] * recipe.cost_critics)
        measured = {
            "constraint": excess,
            "intrinsic_return": intrinsic_return,
            "cost_bias": seen.cost_bias.mean(),
            "cost_bias_unsafe": where_unsafe(seen.cost_bias, sample.costs),
            "cost_value": seen.v_c.mean(),
            "integral": integral,
            "cost_explained": explained(seen.v_c, seen.cost_bias),
            "cost_spread": seen.a_c.std(),
            "reward_spread": seen.a_r.std(),
        }
        report = priced | scheduled | spared | measured
        return Judged(evidence, targets, constraint, lam, multiplier, margin, integral, schedule, seen.balance_bias, report)

    @jax.jit
    def improve(actor: Actor, judged: Judged, learning_rate: Array, key: jax.Array) -> tuple[Actor, Report]:
        actor, stepped = step_actor(actor, judged.evidence, judged.constraint, judged.lam, learning_rate, key)
        entropy = policy.entropy(policy.outputs(actor.params, judged.evidence.observations)).mean()
        return actor, stepped | {"entropy": entropy}

    def update(
        state: LearnerState,
        sample: Sample,
        normalise: Affine,
        beta: Array,
        episodes: Episodes,
        progress: Array,
        key: jax.Array,
    ) -> Update:
        judged = judge(state, sample, normalise, beta, episodes)
        actor_rate, critic_rate = _learning_rates(config, progress)
        actor, actor_key = Actor(state.policy, state.optimiser), jax.random.fold_in(key, 1)
        observations, targets = np.asarray(judged.evidence.observations), np.asarray(judged.targets)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        if config.critic.replay:  # prototype: not part of the checkpoint
            recent.append((observations, targets))
            observations = np.concatenate([o for o, _ in recent])
            targets = np.concatenate([t for _, t in recent], axis=1)
        with ThreadPoolExecutor(threads) as pool:
            improving = pool.submit(lambda: jax.block_until_ready(improve(actor, judged, actor_rate, actor_key)))
            critics, losses = fit(state.critics, observations, targets, rng, critic_rate, config.critic, pool.map)
            actor, stepped = improving.result()
        fitted = {"reward_loss": losses[0], "cost_loss": losses[1:].mean()}
        integral = Integral(judged.integral, jnp.float32(stepped.get("cpo_case", 1) == 0))
        controls = judged.multiplier, judged.margin, integral, judged.schedule
        params = policy.quieted(actor.params, progress, config.policy)
        after = LearnerState(params, critics, actor.optimiser, *controls)
        return Update(after, judged.balance_bias, stepped | judged.report | fitted)

    return update


def _learning_rates(config: Config, progress: Array) -> tuple[np.float32, np.float32]:
    """Of actor and critics, when this share of the run is done."""
    left = 1 - progress
    actor, critic = config.proximal.learning_rate * left, config.critic.learning_rate
    return np.float32(actor), np.float32(critic * left if config.critic.decay else critic)


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
