"""A learner: networks, and the function that improves them from a batch, assembled from compiled parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor_steps import actor_step_for, init_actor
from flashbulb.algorithms.budget_schedule import Schedule, reshaped_reward, simmer_step
from flashbulb.algorithms.critics import Critics, fit, init_critics
from flashbulb.algorithms.estimates import Sample, centre, estimate, standardise, where_unsafe
from flashbulb.algorithms.multipliers import Ascent, Pid, Report, ascent_step, pid_step
from flashbulb.algorithms.parts import Algorithm
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import Actor, ActorBatch
from flashbulb.config import Config
from flashbulb.normaliser import FrozenNormaliser

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


UpdateFunction = Callable[[LearnerState, Sample, FrozenNormaliser, Array, Episodes, Array, jax.Array], Update]


def init_learner(
    policy: Policy, observation_size: int, algorithm: Algorithm, config: Config, key: jax.Array
) -> LearnerState:
    policy_key, critic_key = jax.random.split(key)
    actor = init_actor(policy, observation_size, algorithm, config, policy_key)
    critics = init_critics(critic_key, observation_size, algorithm.cost_critics, config.critic)
    multiplier: Any = ()
    if algorithm.multiplier == "pid":
        multiplier = Pid.start(config.pid)
    elif algorithm.multiplier == "ascent":
        multiplier = Ascent.start(config.ascent)
    schedule = () if algorithm.augmentation == "none" else Schedule.start(first_budget(algorithm, config))
    return LearnerState(actor.params, critics, actor.optimiser, multiplier, schedule)


def first_budget(algorithm: Algorithm, config: Config) -> float:
    """What an episode may cost before anything was learned."""
    return config.cost_limit * (config.budget.start if algorithm.augmentation == "simmer" else 1.0)


class Targets(NamedTuple):
    """What is known before anything is learned."""

    evidence: ActorBatch
    targets: jax.Array  # (critics, states)
    constraint: jax.Array  # c of the linear model
    lam: jax.Array
    multiplier: Any
    schedule: Any
    balance_bias: jax.Array
    report: Report


def make_update(policy: Policy, algorithm: Algorithm, config: Config) -> UpdateFunction:
    """Lines 5 to 12 of Algorithm 1: judge the sample, then improve the policy and fit the critics.

    Neither of the latter two needs the other, so they run side by side where there are threads for it; results do not
    depend on that. Arguments: the learner's state, the sample, the frozen normaliser, beta, the episodes' means, the
    share of the run that is done, and a random key.
    """
    step_actor = actor_step_for(policy, algorithm, config)
    threads = config.threads or os.cpu_count() or 1

    @jax.jit
    def judge(
        state: LearnerState, sample: Sample, normalise: FrozenNormaliser, beta: Array, episodes: Episodes
    ) -> Targets:
        rewards, schedule, scheduled = _budget(state, sample, episodes, algorithm, config)
        seen = estimate(state.critics, sample, rewards, beta, normalise, config)

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic_return = beta * sample.intrinsic.mean() / (1 - config.cost_gamma)
        cost = episodes.cost + config.balance.margin * intrinsic_return
        excess = cost - config.cost_limit
        multiplier, lam, priced = _price(state, cost, algorithm, config)
        constraint = excess / episodes.length if config.trust_region.scale == "step" else excess

        observations, actions = _flat(normalise(sample.observations)), _flat(sample.actions)
        log_prob = policy.log_prob(policy.outputs(state.policy, observations), actions)
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(centre(seen.a_c))
        evidence = ActorBatch(observations, actions, log_prob, a_r, a_c)
        targets = jnp.stack([_flat(seen.a_r + seen.v_r)] + [_flat(seen.a_c + seen.v_c)] * algorithm.cost_critics)
        measured = {
            "constraint": excess,
            "intrinsic_return": intrinsic_return,
            "critic_bias_sampled": seen.cost_bias.mean(),
            "critic_bias_sampled_unsafe": where_unsafe(seen.cost_bias, sample.costs),
            "cost_value": seen.v_c.mean(),
        }
        report = priced | scheduled | measured
        return Targets(evidence, targets, constraint, lam, multiplier, schedule, seen.balance_bias, report)

    @jax.jit
    def improve(actor: Actor, judged: Targets, learning_rate: Array, key: jax.Array) -> tuple[Actor, Report]:
        actor, stepped = step_actor(actor, judged.evidence, judged.constraint, judged.lam, learning_rate, key)
        entropy = policy.entropy(policy.outputs(actor.params, judged.evidence.observations)).mean()
        return actor, stepped | {"entropy": entropy}

    def update(
        state: LearnerState,
        sample: Sample,
        normalise: FrozenNormaliser,
        beta: Array,
        episodes: Episodes,
        progress: Array,
        key: jax.Array,
    ) -> Update:
        judged = judge(state, sample, normalise, beta, episodes)
        actor_rate, critic_rate = (rate * (1 - progress) for rate in _learning_rates(config))
        actor, actor_key = Actor(state.policy, state.optimiser), jax.random.fold_in(key, 1)
        observations, targets = np.asarray(judged.evidence.observations), np.asarray(judged.targets)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        with ThreadPoolExecutor(threads) as pool:
            improving = pool.submit(lambda: jax.block_until_ready(improve(actor, judged, actor_rate, actor_key)))
            critics, losses = fit(state.critics, observations, targets, rng, critic_rate, config.critic, pool.map)
            actor, stepped = improving.result()
        fitted = {"reward_loss": losses[0], "cost_loss": losses[1:].mean()}
        after = LearnerState(actor.params, critics, actor.optimiser, judged.multiplier, judged.schedule)
        return Update(after, judged.balance_bias, stepped | judged.report | fitted)

    return update


def _learning_rates(config: Config) -> tuple[np.float32, np.float32]:
    """Of actor and critics, at the start."""
    return np.float32(config.proximal.learning_rate), np.float32(config.critic.learning_rate)


def _budget(
    state: LearnerState, sample: Sample, episodes: Episodes, algorithm: Algorithm, config: Config
) -> tuple[jax.Array, Any, Report]:
    """The rewards to learn from, the schedule of the budget, and what to report of it."""
    if algorithm.augmentation == "none":
        return sample.rewards, state.schedule, {}
    rewards = reshaped_reward(sample.rewards, sample.next_observations, config.budget)
    schedule = state.schedule
    if algorithm.augmentation == "simmer":
        schedule = simmer_step(schedule, episodes.cost, config.cost_limit, config.budget)
    return rewards, schedule, {"budget": state.schedule.budget}


def _price(state: LearnerState, cost: jax.Array, algorithm: Algorithm, config: Config) -> tuple[Any, jax.Array, Report]:
    """The multiplier's state, lambda, and what to report of it. CPO's dual finds its own."""
    if algorithm.multiplier == "pid":
        return pid_step(state.multiplier, cost, config.cost_limit, config.pid)
    if algorithm.multiplier == "ascent":
        return ascent_step(state.multiplier, cost, config.cost_limit, config.ascent)
    return state.multiplier, jnp.float32(0), {}


def _flat(x: jax.Array) -> jax.Array:
    """(time, member, ...) -> (state, ...)."""
    return x.reshape(-1, *x.shape[2:])
