"""A learner: networks, and the functions that estimate a batch and improve the networks from it (Algorithm 1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor import Actor, Metrics, StepInputs
from flashbulb.algorithms.advantages import (
    centre,
    estimate_advantages,
    explained_variance,
    mean_where_unsafe,
    standardise,
)
from flashbulb.algorithms.critics import Critics, fit, init_critics
from flashbulb.algorithms.intrinsic_return import intrinsic_return
from flashbulb.algorithms.margin import ExcessIntegral, Margin, integral_step, margin_step
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.registry import Algorithm
from flashbulb.algorithms.trust_region import RECOVER
from flashbulb.batch import ActorBatch, Batch, Constraint
from flashbulb.config import Config
from flashbulb.cores import thread_count


class LearnerState(NamedTuple):
    """All that learning changes; every leaf is an array."""

    policy: Any
    critics: Critics
    optimiser: Any = ()  # the actor's
    multiplier: Any = ()  # the multiplier part's
    schedule: Any = ()  # the augmentation's, such as BudgetSchedule
    margin: Any = ()  # Margin, if the user allows a frequency of violations
    integral: Any = ()  # ExcessIntegral, if the step takes the constraint itself and has integral action


class Learner:
    """An algorithm's functions for one policy and configuration. Pure: all state is passed in and returned."""

    def __init__(self, policy: Policy, algorithm: Algorithm, config: Config) -> None:
        self.policy, self.algorithm, self.config = policy, algorithm, config
        self._estimate = jax.jit(self._estimates)
        self._improve = jax.jit(self._actor_update)
        self._multiplier, self._augmentation = algorithm.multiplier_part, algorithm.augmentation_part
        self._actor_step = algorithm.actor_part.make(policy, config)

    def init(self, observation_size: int, key: jax.Array) -> LearnerState:
        config, algorithm = self.config, self.algorithm
        policy_key, critic_key = jax.random.split(key)
        params = self.policy.init(policy_key, observation_size, config.policy)
        optimiser = algorithm.actor_part.start(params, config)
        critics = init_critics(critic_key, observation_size, algorithm.cost_critics, config.critic)
        multiplier = self._multiplier.start(config) if self._multiplier else ()
        schedule = self._augmentation.start(config)
        margin = () if config.violations is None else Margin.start(config.violations, config.margin)
        integral = ExcessIntegral.start() if self._has_integral else ()
        return LearnerState(params, critics, optimiser, multiplier, schedule, margin, integral)

    @property
    def _has_integral(self) -> bool:
        return self.config.integral.gain > 0 and "integral" in self.algorithm.actor_part.settings

    def estimate(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Batch, Metrics]:
        """Values, advantages and the constraint of a batch; the multiplier and the budget react to its cost."""
        means = jax.tree.map(np.float32, batch.means)
        arrays = batch._replace(iteration=0, episodes=None, means=means, unsafe=None, beta=np.float32(batch.beta))
        state, filled, metrics = self._estimate(state, arrays)
        return state, batch._replace(**filled), metrics

    def update(
        self, state: LearnerState, batch: Batch, progress: float, key: jax.Array
    ) -> tuple[LearnerState, Metrics]:
        """Improve the policy and fit the critics. `progress` is the share of the run that is done.

        Neither needs the other, so they run side by side where there are threads; results do not depend on that.
        """
        left = 1 - np.float32(progress)
        actor_rate = np.float32(self.config.proximal.learning_rate) * left
        critic_rate = np.float32(self.config.critic.learning_rate) * (left if self.config.critic.decay else 1)
        actor, actor_key = Actor(state.policy, state.optimiser), jax.random.fold_in(key, 1)
        inputs = StepInputs(batch.actor, batch.constraint, actor_rate, np.float32(progress), actor_key)
        observations, targets = np.asarray(batch.actor.observations), np.asarray(batch.critic_targets)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        with ThreadPoolExecutor(thread_count(self.config.threads)) as pool:
            improving = pool.submit(lambda: jax.block_until_ready(self._improve(actor, inputs)))
            critics, losses = fit(state.critics, observations, targets, rng, critic_rate, self.config.critic, pool.map)
            actor, metrics = improving.result()
        integral = state.integral
        if self._has_integral:
            integral = integral._replace(saturated=jnp.float32(metrics["cpo_case"] == RECOVER))
        state = state._replace(policy=actor.params, optimiser=actor.optimiser, critics=critics, integral=integral)
        return state, metrics | {"reward_loss": losses[0], "cost_loss": losses[1:].mean()}

    def _estimates(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, dict[str, Any], Metrics]:
        """Compiled part of `estimate`: the state, the batch's new fields, metrics."""
        config, cost, length = self.config, batch.means.cost, batch.means.length
        rewards, schedule, scheduled = self._augmentation.rewards(state.schedule, batch, config)
        seen = estimate_advantages(state.critics, batch, rewards, config)

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        mean = batch.beta * batch.intrinsic.mean() if seen.next_beta is None else seen.added.mean()
        gamma, unit = config.cost_gamma, config.balance.unit
        intrinsic = intrinsic_return(seen.added, mean, batch.ended, length, gamma, unit)
        # Where the controller has a margin of its own, the larger of the two counts.
        spare, margin = config.balance.margin * intrinsic, state.margin
        kept: Metrics = {}
        if config.violations is not None:
            errors = batch.means.cost_error, config.cost_limit, config.violations, config.margin
            margin, u, kept = margin_step(state.margin, cost, *errors)
            spare = jnp.maximum(spare, u)
        limited = cost + spare
        excess = limited - config.cost_limit
        multiplier, lam, weighed = state.multiplier, jnp.float32(0), Metrics()
        if self._multiplier:
            multiplier, lam, weighed = self._multiplier.step(state.multiplier, limited, config)
        integral, total = state.integral, excess
        if self._has_integral:
            integral = integral_step(state.integral, excess, config.cost_limit, config.integral)
            total, kept = excess + integral.value, kept | {"integral": integral.value}
        c = total / length if config.trust_region.scale == "step" else total

        observations, actions = _flat(batch.normalise(batch.observations)), _flat(batch.actions)
        log_prob = self.policy.log_prob(self.policy.outputs(state.policy, observations), actions)
        scaled = standardise if config.cost_advantage == "standardised" and self._multiplier else centre
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(scaled(seen.a_c))
        cost_targets = [_flat(seen.a_c + seen.v_c)] * self.algorithm.cost_critics
        filled = {
            "actor": ActorBatch(observations, actions, log_prob, a_r, a_c),
            "critic_targets": jnp.stack([_flat(seen.a_r + seen.v_r), *cost_targets]),
            "constraint": Constraint(excess, c, lam),
            "cost_bias": seen.balance_bias,
            "next_beta": seen.next_beta,
        }
        measured = {
            "constraint": excess,
            "intrinsic_return": intrinsic,
            "critic_bias_sampled": seen.sampled_bias.mean(),
            "critic_bias_sampled_unsafe": mean_where_unsafe(seen.sampled_bias, batch.costs),
            "cost_value": seen.v_c.mean(),
            "cost_explained_variance": explained_variance(seen.v_c, seen.sampled_bias),
        }
        state = state._replace(multiplier=multiplier, schedule=schedule, margin=margin, integral=integral)
        return state, filled, weighed | scheduled | kept | measured

    def _actor_update(self, actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        """Compiled part of `update`."""
        actor, metrics = self._actor_step(actor, inputs)
        entropy = self.policy.entropy(self.policy.outputs(actor.params, inputs.batch.observations)).mean()
        return actor, metrics | {"entropy": entropy}


def _flat(x: jax.Array) -> jax.Array:
    """(time, env, ...) -> (state, ...)."""
    return x.reshape(-1, *x.shape[2:])
