"""How each kind of actor steps, behind one signature: actor, evidence, constraint, price, progress, key."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from flashbulb.config import Config
from flashbulb.learn.cpo import StepRule, barrier_rule, cpo_rule, cpo_step, share_rule
from flashbulb.learn.lagrangian import Gradients, lagrangian_step
from flashbulb.learn.parts import Recipe
from flashbulb.learn.policy import Policy
from flashbulb.learn.projection import price_of_cost, projection_step
from flashbulb.learn.proximal import Actor, Evidence, actor_optimiser, lagrangian_advantage, proximal_step

Report = dict[str, jax.Array]
# (actor, evidence, c of the linear model, lambda, step size, random key) -> (actor, report)
ActorStep = Callable[[Actor, Evidence, jax.Array, jax.Array, jax.Array, jax.Array], tuple[Actor, Report]]


def init_actor(policy: Policy, observation_size: int, recipe: Recipe, config: Config, key: jax.Array) -> Actor:
    params = policy.init(key, observation_size, config.policy)
    if recipe.actor == "trust-region":
        return Actor(params, Gradients.start(params) if recipe.multiplier in ("pid", "ascent") else ())
    adam = actor_optimiser(config.proximal).init(params)
    return Actor(params, (adam, adam) if recipe.actor == "proximal-projection" else adam)


def actor_step_for(policy: Policy, recipe: Recipe, config: Config) -> ActorStep:
    if recipe.actor == "proximal":
        return _proximal(policy, config)
    if recipe.actor == "proximal-projection":
        return _proximal_projection(policy, config)
    rules = {"dual": cpo_rule, "barrier": barrier_rule, "share": share_rule}
    if recipe.multiplier in rules:
        return _constrained_trust_region(policy, config, rules[recipe.multiplier])
    return _lagrangian(policy, config) if recipe.multiplier != "none" else _trust_region(policy, config)


def _constrained_trust_region(policy: Policy, config: Config, rule: StepRule) -> ActorStep:
    """CPO and its kin: the cost is a constraint of the step itself."""

    def step(
        actor: Actor, evidence: Evidence, c: jax.Array, lam: jax.Array, rate: jax.Array, key: jax.Array
    ) -> tuple[Actor, Report]:
        a_r, a_c = evidence.reward_advantage, evidence.cost_advantage
        seen = evidence.observations, evidence.actions
        params, report = cpo_step(policy, actor.params, *seen, a_r, a_c, c, config.trust_region, rule)
        return Actor(params, actor.optimiser), report

    return step


def _lagrangian(policy: Policy, config: Config) -> ActorStep:
    def step(
        actor: Actor, evidence: Evidence, c: jax.Array, lam: jax.Array, rate: jax.Array, key: jax.Array
    ) -> tuple[Actor, Report]:
        left = rate / config.proximal.learning_rate  # share of the run
        stepped = lagrangian_step(policy, actor.params, actor.optimiser, evidence, lam, left, config.trust_region)
        params, gradients, report = stepped
        return Actor(params, gradients), report

    return step


def _trust_region(policy: Policy, config: Config) -> ActorStep:
    """TRPO on the Lagrangian advantage: CPO's step with a constraint that nothing can violate."""

    def step(
        actor: Actor, evidence: Evidence, c: jax.Array, lam: jax.Array, rate: jax.Array, key: jax.Array
    ) -> tuple[Actor, Report]:
        advantage = lagrangian_advantage(evidence.reward_advantage, evidence.cost_advantage, lam)
        no_cost, slack = jnp.zeros_like(advantage), jnp.float32(-1)
        seen = evidence.observations, evidence.actions
        params, report = cpo_step(policy, actor.params, *seen, advantage, no_cost, slack, config.trust_region)
        return Actor(params, actor.optimiser), {name: report[name] for name in ("kl", "step_fraction", "reward_gain")}

    return step


def _proximal(policy: Policy, config: Config) -> ActorStep:
    def step(
        actor: Actor, evidence: Evidence, c: jax.Array, lam: jax.Array, rate: jax.Array, key: jax.Array
    ) -> tuple[Actor, Report]:
        descent = proximal_step(policy, actor, evidence, lam, rate, key, config.proximal)
        return descent.actor, {"kl": descent.kl, "actor_passes": descent.passes}

    return step


def _proximal_projection(policy: Policy, config: Config) -> ActorStep:
    """CUP: improve for reward alone, then project for cost."""

    def step(
        actor: Actor, evidence: Evidence, c: jax.Array, lam: jax.Array, rate: jax.Array, key: jax.Array
    ) -> tuple[Actor, Report]:
        improve_key, project_key = jax.random.split(key)
        free = jnp.zeros_like(lam)
        # Each step has moments of its own: the projection's gradients are larger by the price of cost, and would leave
        # the improvement's, divided by their mean square, next to nothing.
        improving, projecting = actor.optimiser
        start = Actor(actor.params, improving)
        half = proximal_step(policy, start, evidence, free, rate, improve_key, config.proximal)
        price = price_of_cost(lam, config.cost_gamma, config.cost_lam)
        halfway = Actor(half.actor.params, projecting)
        full = projection_step(policy, halfway, evidence, price, rate, project_key, config.proximal)
        sampled = policy.outputs(actor.params, evidence.observations)
        report = {
            "kl": policy.kl(policy.outputs(full.actor.params, evidence.observations), sampled).mean(),
            "actor_passes": half.passes,
            "projection_passes": full.passes,
        }
        return Actor(full.actor.params, (half.actor.optimiser, full.actor.optimiser)), report

    return step
