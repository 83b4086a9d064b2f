"""A learner: networks, and the functions that estimate a batch and improve the networks from it (Algorithm 1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor import Actor, ActorStep, Metrics, StepInputs
from flashbulb.algorithms.advantages import centre, estimate_advantages, mean_where_unsafe, standardise
from flashbulb.algorithms.cost_budget import BudgetSchedule, initial_budget, reshaped_reward, simmer_step
from flashbulb.algorithms.cpo import cpo_actor, trpo_actor
from flashbulb.algorithms.critics import Critics, fit, init_critics
from flashbulb.algorithms.cup import cup_actor
from flashbulb.algorithms.multipliers import Ascent, Pid, ascent_step, pid_step
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.proximal import actor_optimiser, ppo_actor
from flashbulb.algorithms.registry import Algorithm
from flashbulb.batch import ActorBatch, Array, Batch, Constraint
from flashbulb.config import Config
from flashbulb.cores import thread_count


class LearnerState(NamedTuple):
    """All that learning changes; every leaf is an array."""

    policy: Any
    critics: Critics
    optimiser: Any = ()  # the actor's
    multiplier: Any = ()  # Pid, Ascent, or nothing
    schedule: Any = ()  # BudgetSchedule, if the budget is in the state


class Learner:
    """An algorithm's functions for one policy and configuration. Pure: all state is passed in and returned."""

    def __init__(self, policy: Policy, algorithm: Algorithm, config: Config) -> None:
        self.policy, self.algorithm, self.config = policy, algorithm, config
        self._estimate = jax.jit(self._estimates)
        self._improve = jax.jit(self._actor_update)
        self._actor_step = _actor_step(policy, algorithm, config)

    def init(self, observation_size: int, key: jax.Array) -> LearnerState:
        config, algorithm = self.config, self.algorithm
        policy_key, critic_key = jax.random.split(key)
        params = self.policy.init(policy_key, observation_size, config.policy)
        optimiser = () if algorithm.actor == "trust-region" else actor_optimiser(config.proximal).init(params)
        critics = init_critics(critic_key, observation_size, algorithm.cost_critics, config.critic)
        multiplier: Any = ()
        if algorithm.multiplier == "pid":
            multiplier = Pid.start(config.pid)
        elif algorithm.multiplier == "ascent":
            multiplier = Ascent.start(config.ascent)
        augmented = algorithm.augmentation != "none"
        schedule = BudgetSchedule.start(initial_budget(algorithm, config)) if augmented else ()
        return LearnerState(params, critics, optimiser, multiplier, schedule)

    def estimate(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Batch, Metrics]:
        """Values, advantages and the constraint of a batch; the multiplier and the budget react to its cost."""
        cost, length = np.float32(batch.means.cost), np.float32(batch.means.length)
        arrays = batch._replace(iteration=0, episodes=None, means=None, unsafe=None, beta=np.float32(batch.beta))
        state, filled, metrics = self._estimate(state, arrays, cost, length)
        return state, batch._replace(**filled), metrics

    def update(
        self, state: LearnerState, batch: Batch, progress: float, key: jax.Array
    ) -> tuple[LearnerState, Metrics]:
        """Improve the policy and fit the critics. `progress` is the share of the run that is done.

        Neither needs the other, so they run side by side where there are threads; results do not depend on that.
        """
        rates = self.config.proximal.learning_rate, self.config.critic.learning_rate
        actor_rate, critic_rate = (np.float32(rate) * (1 - np.float32(progress)) for rate in rates)
        actor, actor_key = Actor(state.policy, state.optimiser), jax.random.fold_in(key, 1)
        inputs = StepInputs(batch.actor, batch.constraint, actor_rate, actor_key)
        observations, targets = np.asarray(batch.actor.observations), np.asarray(batch.critic_targets)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        with ThreadPoolExecutor(thread_count(self.config.threads)) as pool:
            improving = pool.submit(lambda: jax.block_until_ready(self._improve(actor, inputs)))
            critics, losses = fit(state.critics, observations, targets, rng, critic_rate, self.config.critic, pool.map)
            actor, metrics = improving.result()
        state = state._replace(policy=actor.params, optimiser=actor.optimiser, critics=critics)
        return state, metrics | {"reward_loss": losses[0], "cost_loss": losses[1:].mean()}

    def _estimates(
        self, state: LearnerState, batch: Batch, cost: Array, length: Array
    ) -> tuple[LearnerState, dict[str, Any], Metrics]:
        """Compiled part of `estimate`: the state, the batch's new fields, metrics."""
        config = self.config
        rewards, schedule, scheduled = self._rewards(state, batch, cost)
        seen = estimate_advantages(state.critics, batch, rewards, config)

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic_return = batch.beta * batch.intrinsic.mean() / (1 - config.cost_gamma)
        limited = cost + config.balance.margin * intrinsic_return
        excess = limited - config.cost_limit
        multiplier, lam, weighed = self._multiplier(state, limited)
        c = excess / length if config.trust_region.scale == "step" else excess

        observations, actions = _flat(batch.normalise(batch.observations)), _flat(batch.actions)
        log_prob = self.policy.log_prob(self.policy.outputs(state.policy, observations), actions)
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(centre(seen.a_c))
        cost_targets = [_flat(seen.a_c + seen.v_c)] * self.algorithm.cost_critics
        filled = {
            "actor": ActorBatch(observations, actions, log_prob, a_r, a_c),
            "critic_targets": jnp.stack([_flat(seen.a_r + seen.v_r), *cost_targets]),
            "constraint": Constraint(excess, c, lam),
            "cost_bias": seen.balance_bias,
        }
        measured = {
            "constraint": excess,
            "intrinsic_return": intrinsic_return,
            "critic_bias_sampled": seen.sampled_bias.mean(),
            "critic_bias_sampled_unsafe": mean_where_unsafe(seen.sampled_bias, batch.costs),
            "cost_value": seen.v_c.mean(),
        }
        return state._replace(multiplier=multiplier, schedule=schedule), filled, weighed | scheduled | measured

    def _rewards(self, state: LearnerState, batch: Batch, cost: Array) -> tuple[jax.Array, Any, Metrics]:
        """The rewards to learn from, the schedule of the budget, and metrics of it."""
        algorithm, config = self.algorithm, self.config
        if algorithm.augmentation == "none":
            return batch.rewards, state.schedule, {}
        rewards = reshaped_reward(batch.rewards, batch.next_observations, config.budget)
        schedule = state.schedule
        if algorithm.augmentation == "simmer":
            schedule = simmer_step(schedule, cost, config.cost_limit, config.budget)
        return rewards, schedule, {"budget": state.schedule.budget}

    def _multiplier(self, state: LearnerState, cost: jax.Array) -> tuple[Any, jax.Array, Metrics]:
        """The multiplier's state, lambda, and metrics. CPO's dual computes its own."""
        if self.algorithm.multiplier == "pid":
            return pid_step(state.multiplier, cost, self.config.cost_limit, self.config.pid)
        if self.algorithm.multiplier == "ascent":
            return ascent_step(state.multiplier, cost, self.config.cost_limit, self.config.ascent)
        return state.multiplier, jnp.float32(0), {}

    def _actor_update(self, actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        """Compiled part of `update`."""
        actor, metrics = self._actor_step(actor, inputs)
        entropy = self.policy.entropy(self.policy.outputs(actor.params, inputs.batch.observations)).mean()
        return actor, metrics | {"entropy": entropy}


def _actor_step(policy: Policy, algorithm: Algorithm, config: Config) -> ActorStep:
    if algorithm.actor == "proximal":
        return ppo_actor(policy, config.proximal)
    if algorithm.actor == "proximal-projection":
        return cup_actor(policy, config)
    return (cpo_actor if algorithm.multiplier == "dual" else trpo_actor)(policy, config.trust_region)


def _flat(x: jax.Array) -> jax.Array:
    """(time, env, ...) -> (state, ...)."""
    return x.reshape(-1, *x.shape[2:])
