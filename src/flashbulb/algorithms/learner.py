"""A learner: networks, and the functions that estimate a batch and improve the networks from it (Algorithm 1)."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.actor import Actor, HostStep, Metrics, StepInputs, for_each_cost, host_generator
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
from flashbulb.algorithms.small_network import blas
from flashbulb.algorithms.trust_region import RECOVER
from flashbulb.batch import ActorBatch, Batch, Constraint
from flashbulb.config import Config
from flashbulb.cores import thread_count


class LearnerState(NamedTuple):
    """All that learning changes; every leaf is an array."""

    policy: Any
    critics: Critics
    optimiser: Any = ()  # the actor's
    multiplier: Any = ()  # the multiplier part's; with several costs the last axis is theirs, as in the margin
    schedule: Any = ()  # the augmentation's, such as BudgetSchedule
    margin: Any = ()  # Margin, if the user allows a frequency of violations
    integral: Any = ()  # ExcessIntegral, if the step takes the constraint itself and has integral action


class Learner:
    """An algorithm's functions for one policy and configuration. Pure: all state is passed in and returned."""

    def __init__(self, policy: Policy, algorithm: Algorithm, config: Config) -> None:
        self.policy, self.algorithm, self.config = policy, algorithm, config
        self._estimate = jax.jit(self._estimates)
        self._multiplier, self._augmentation = algorithm.multiplier_part, algorithm.augmentation_part
        self._actor_step = algorithm.actor_part.make(policy, config)
        self._entropy = jax.jit(self._mean_entropy)
        self._improve = self._host_update if isinstance(self._actor_step, HostStep) else jax.jit(self._actor_update)

    def init(self, observation_size: int, key: jax.Array) -> LearnerState:
        config, algorithm, several = self.config, self.algorithm, len(self.config.cost_names)
        policy_key, critic_key = jax.random.split(key)
        params = self.policy.init(policy_key, observation_size, config.policy)
        optimiser = algorithm.actor_part.start(params, config)
        critics = init_critics(critic_key, observation_size, algorithm.cost_critics * max(several, 1), config.critic)
        multiplier = self._multiplier.start(config) if self._multiplier else ()
        schedule = self._augmentation.start(config)
        margin = () if config.violations is None else Margin.start(config.violations, config.margin)
        integral = ExcessIntegral.start() if self._has_integral else ()
        if several:  # each of them for each cost
            multiplier, margin = (
                jax.tree.map(lambda leaf: jnp.repeat(leaf[..., None], several, axis=-1), part)
                for part in (multiplier, margin)
            )
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
        rng = host_generator(key)
        # One thread for products around both, so that neither gives BLAS its threads back while the other still runs.
        with blas().limit(limits=1), ThreadPoolExecutor(thread_count(self.config.threads)) as pool:
            improving = pool.submit(lambda: jax.block_until_ready(self._improve(actor, inputs)))
            critics, losses = fit(state.critics, observations, targets, rng, critic_rate, self.config.critic, pool.map)
            actor, metrics = improving.result()
        integral = state.integral
        if self._has_integral:
            integral = integral._replace(saturated=jnp.float32(metrics["cpo_case"] == RECOVER))
        params = self.policy.keep_noise(actor.params, self.config.policy)
        state = state._replace(policy=params, optimiser=actor.optimiser, critics=critics, integral=integral)
        several = len(self.config.cost_names)
        cost_loss = losses[1:].reshape(several, -1).mean(axis=1) if several else losses[1:].mean()
        return state, metrics | {"reward_loss": losses[0], "cost_loss": cost_loss}

    def _estimates(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, dict[str, Any], Metrics]:
        """Compiled part of `estimate`: the state, the batch's new fields, metrics."""
        config, several = self.config, batch.several_costs
        rewards, schedule, scheduled = self._augmentation.rewards(state.schedule, batch, config)
        seen = estimate_advantages(state.critics, batch, rewards, config)
        limits = jnp.array(list(config.cost_limit.values())) if isinstance(config.cost_limit, dict) else config.limit
        mean = batch.beta * batch.intrinsic.mean(axis=(0, 1)) if seen.next_beta is None else seen.added.mean()
        known = batch.means.cost, batch.means.cost_error, seen.added, mean, limits
        controlled = state.multiplier, state.margin, state.integral
        judge = for_each_cost(lambda *cost: self._constraint(batch.means.length, batch.ended, *cost), several)
        controlled, constraint, kept = judge(controlled, *known)

        observations, actions = _flat(batch.normalise(batch.observations)), _flat(batch.actions)
        log_prob = self.policy.log_prob(self.policy.outputs(state.policy, observations), actions)
        scaled = standardise if config.cost_advantage == "standardised" and self._multiplier else centre
        a_r, a_c = _flat(standardise(seen.a_r)), _flat(for_each_cost(scaled, several)(seen.a_c))
        cost_targets = _flat(seen.a_c + seen.v_c)
        each_target = cost_targets.T if several else cost_targets[None]
        each_target = jnp.repeat(each_target, self.algorithm.cost_critics, axis=0)
        filled = {
            "actor": ActorBatch(observations, actions, log_prob, a_r, a_c),
            "critic_targets": jnp.concatenate([_flat(seen.a_r + seen.v_r)[None], each_target]),
            "constraint": constraint,
            "cost_bias": seen.balance_bias,
            "next_beta": seen.next_beta,
        }
        measured = for_each_cost(_measured, several)(seen.v_c, seen.sampled_bias, batch.costs)
        multiplier, margin, integral = controlled
        state = state._replace(multiplier=multiplier, schedule=schedule, margin=margin, integral=integral)
        return state, filled, scheduled | kept | measured

    def _constraint(
        self,
        length: jax.Array,
        ended: jax.Array,
        controlled: tuple[Any, Any, Any],
        cost: jax.Array,
        cost_error: jax.Array,
        added: jax.Array,
        added_mean: jax.Array,
        limit: Any,
    ) -> tuple[tuple[Any, Any, Any], Constraint, Metrics]:
        """What one cost demands of the step; multiplier, margin and integral react to it."""
        config = dataclasses.replace(self.config, cost_limit=limit)
        multiplier, margin, integral = controlled
        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic = intrinsic_return(added, added_mean, ended, length, config.cost_gamma, config.balance.unit)
        # Where the controller has a margin of its own, the larger of the two counts.
        spare = config.balance.margin * intrinsic
        kept: Metrics = {}
        if config.violations is not None:
            margin, u, kept = margin_step(margin, cost, cost_error, limit, config.violations, config.margin)
            spare = jnp.maximum(spare, u)
        limited = cost + spare
        excess = limited - limit
        lam, weighed = jnp.float32(0), Metrics()
        if self._multiplier:
            multiplier, lam, weighed = self._multiplier.step(multiplier, limited, config)
        total = excess
        if self._has_integral:
            integral = integral_step(integral, excess, limit, config.integral)
            total, kept = excess + integral.value, kept | {"integral": integral.value}
        c = total / length if config.trust_region.scale == "step" else total
        kept = weighed | kept | {"constraint": excess, "intrinsic_return": intrinsic}
        return (multiplier, margin, integral), Constraint(excess, c, lam), kept

    def _actor_update(self, actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        """The policy's part of `update`, which JAX compiles."""
        assert not isinstance(self._actor_step, HostStep)
        actor, metrics = self._actor_step(actor, inputs)
        return actor, metrics | {"entropy": self._mean_entropy(actor.params, inputs.batch.observations)}

    def _host_update(self, actor: Actor, inputs: StepInputs) -> tuple[Actor, Metrics]:
        """The same where the step runs on the host."""
        assert isinstance(self._actor_step, HostStep)
        actor, batch, constraint = jax.tree.map(np.asarray, (actor, inputs.batch, inputs.constraint))
        actor, metrics = self._actor_step.run(actor, inputs._replace(batch=batch, constraint=constraint))
        return actor, metrics | {"entropy": self._entropy(actor.params, batch.observations)}

    def _mean_entropy(self, params: Any, observations: jax.Array) -> jax.Array:
        return self.policy.entropy(self.policy.outputs(params, observations)).mean()


def _measured(v_c: jax.Array, sampled_bias: jax.Array, costs: jax.Array) -> Metrics:
    """How good the values of a cost were on a new batch."""
    return {
        "critic_bias_sampled": sampled_bias.mean(),
        "critic_bias_sampled_unsafe": mean_where_unsafe(sampled_bias, costs),
        "cost_value": v_c.mean(),
        "cost_explained_variance": explained_variance(v_c, sampled_bias),
    }


def _flat(x: jax.Array) -> jax.Array:
    """(time, env, ...) -> (state, ...)."""
    return x.reshape(-1, *x.shape[2:])
