"""A learner: networks and the one jitted function that improves them from a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import Config
from flashbulb.learn.advantages import discounted_return, gae
from flashbulb.learn.cpo import cpo_step
from flashbulb.learn.critics import Critics, fit, init_critics, values
from flashbulb.learn.policy import Policy
from flashbulb.normaliser import Affine
from flashbulb.recipes import Recipe

Array = Any  # of JAX or of NumPy


class LearnerState(NamedTuple):
    policy: Any
    critics: Critics


class Sample(NamedTuple):
    """What an update needs of a batch; every array is (time, member, ...)."""

    observations: Array
    next_observations: Array  # the final observation where an episode ended
    actions: Array
    rewards: Array
    costs: Array  # extrinsic
    terminated: Array
    ended: Array  # terminated or truncated
    intrinsic: Array  # c^I


class Episodes(NamedTuple):
    """What an update needs of the batch's episodes."""

    cost: Array  # J_C(pi_k), undiscounted
    length: Array


class Update(NamedTuple):
    state: LearnerState
    cost_bias: jax.Array  # (time, member) V_C - G_C, for the balancing factor
    report: dict[str, jax.Array]


UpdateFunction = Callable[[LearnerState, Sample, Affine, Array, Episodes, Array, jax.Array], Update]


def init_learner(policy: Policy, observation_size: int, recipe: Recipe, config: Config, key: jax.Array) -> LearnerState:
    policy_key, critic_key = jax.random.split(key)
    return LearnerState(
        policy.init(policy_key, observation_size, config.policy),
        init_critics(critic_key, observation_size, recipe.cost_critics, config.critic),
    )


def make_update(policy: Policy, recipe: Recipe, config: Config) -> UpdateFunction:
    """Lines 5 to 12 of Algorithm 1 as one compiled function.

    Its arguments: the learner's state, the sample, the frozen normaliser, beta, the episodes' means, the share of
    the run that is done, and a random key.
    """

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
        observations = normalise(sample.observations)
        v_r, v_c = values(state.critics, observations)
        next_v_r, next_v_c = values(state.critics, normalise(sample.next_observations))
        ends = sample.terminated, sample.ended

        # Extrinsic-intrinsic cost and advantage (equation 6 and below it), by GAE.
        costs = sample.costs + beta * sample.intrinsic
        a_r = gae(sample.rewards, v_r, next_v_r, *ends, config.gamma, config.lam)
        a_c = gae(costs, v_c, next_v_c, *ends, config.cost_gamma, config.cost_lam)
        # eps_n = Q_n - Q*, with the sampled discounted extrinsic cost standing in for Q* (section 4.3).
        true_cost = discounted_return(sample.costs, v_c, next_v_c, *ends, config.cost_gamma)
        cost_bias = v_c - true_cost

        # Theorem 2: the constraint is J_C <= d - I, with I the discounted intrinsic cost.
        intrinsic_return = beta * sample.intrinsic.mean() / (1 - config.cost_gamma)
        excess = episodes.cost + intrinsic_return - config.cost_limit
        constraint = excess / episodes.length if config.trust_region.scale == "step" else excess

        def flat(x: jax.Array) -> jax.Array:
            return x.reshape(-1, *x.shape[2:])

        new_policy, report = cpo_step(
            policy,
            state.policy,
            flat(observations),
            flat(sample.actions),
            flat(standardise(a_r)),
            flat(a_c - a_c.mean()),
            constraint,
            config.trust_region,
        )
        targets = jnp.stack([flat(a_r + v_r)] + [flat(a_c + v_c)] * recipe.cost_critics)
        learning_rate = config.critic.learning_rate * (1 - progress)
        critics, losses = fit(state.critics, flat(observations), targets, key, learning_rate, config.critic)

        unsafe = sample.costs > 0
        report |= {
            "constraint": excess,
            "intrinsic_return": intrinsic_return,
            "cost_bias": cost_bias.mean(),
            "cost_bias_unsafe": jnp.where(unsafe, cost_bias, 0).sum() / jnp.maximum(unsafe.sum(), 1),
            "cost_value": v_c.mean(),
            "reward_loss": losses[0],
            "cost_loss": losses[1:].mean(),
            "entropy": policy.entropy(policy.outputs(new_policy, flat(observations))).mean(),
        }
        return Update(LearnerState(new_policy, critics), cost_bias, report)

    return update


def standardise(advantage: jax.Array) -> jax.Array:
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)
