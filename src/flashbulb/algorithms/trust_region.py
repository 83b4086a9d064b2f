"""Steps within a trust region: Fisher products, conjugate gradients, backtracking line search.

Every such step chooses x from the same model: maximise g.x subject to x.H.x / 2 <= phi, with the change of cost b.x and
the constraint c + b.x <= 0. What it does about the constraint is its `StepRule`: `cpo.py`, `c_trpo.py`, `sb_trpo.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from flashbulb.algorithms.actor import Metrics
from flashbulb.algorithms.policy import Outputs, Policy
from flashbulb.batch import ActorBatch
from flashbulb.config import TrustRegionConfig

Vector = jax.Array
Product = Callable[[Vector], Vector]


def fisher_product(
    outputs_of: Callable[[Vector], Outputs], kl: Callable[[Outputs, Outputs], jax.Array], theta: Vector
) -> Product:
    """v -> H v, with H the Hessian of mean KL at theta.

    At theta the KL between equal distributions has no first-order part, so H = J^T F J exactly, with J the
    Jacobian of the network's outputs and F the Hessian of KL in output space. J is linearised once; each
    product then costs one sweep forwards and one back.
    """
    outputs, jacobian = jax.linearize(outputs_of, theta)
    transpose = jax.linear_transpose(jacobian, theta)
    gradient = jax.grad(lambda out: kl(outputs, out).mean())

    def product(v: Vector) -> Vector:
        _, curved = jax.jvp(gradient, (outputs,), (jacobian(v),))
        (result,) = transpose(curved)
        return result

    return product


def fisher_rows(states: int, count: int) -> np.ndarray:
    """Which states H is averaged over: all, or a random subset that is the same in every update."""
    if count == 0 or count >= states:
        return np.arange(states)
    return np.sort(np.random.default_rng(0).choice(states, count, replace=False))


def solve(product: Product, right: Vector, config: TrustRegionConfig) -> Vector:
    """H^-1 right by conjugate gradients, H damped."""
    solution, _ = jax.scipy.sparse.linalg.cg(
        lambda v: product(v) + config.damping * v, right, tol=1e-6, maxiter=config.cg_iterations
    )
    return solution


class Trial(NamedTuple):
    """A candidate policy as the line search sees it."""

    kl: jax.Array
    reward_gain: jax.Array
    cost_change: jax.Array


class Search(NamedTuple):
    theta: Vector
    fraction: jax.Array  # of the full step that was taken; 0 when none was
    trial: Trial


def line_search(
    trial_of: Callable[[Vector], Trial],
    acceptable: Callable[[Trial], jax.Array],
    theta: Vector,
    step: Vector,
    config: TrustRegionConfig,
) -> Search:
    """The longest of step, decay*step, decay^2*step, ... that is acceptable; theta itself if none is.

    Whatever is not finite is not acceptable, so a NaN shortens the step like any other failure.
    """

    def attempt(fraction: jax.Array) -> tuple[Trial, jax.Array]:
        trial = trial_of(theta + fraction * step)
        finite = jnp.isfinite(trial.kl) & jnp.isfinite(trial.reward_gain) & jnp.isfinite(trial.cost_change)
        return trial, finite & acceptable(trial)

    def searching(carry: tuple[jax.Array, jax.Array, Trial, jax.Array]) -> jax.Array:
        tries, _, _, accepted = carry
        return ~accepted & (tries < config.search_steps)

    def shorten(
        carry: tuple[jax.Array, jax.Array, Trial, jax.Array],
    ) -> tuple[jax.Array, jax.Array, Trial, jax.Array]:
        tries, fraction, _, _ = carry
        fraction = fraction * config.search_decay
        return (tries + 1, fraction, *attempt(fraction))

    start = (jnp.array(1), jnp.array(1.0), *attempt(jnp.array(1.0)))
    _, fraction, trial, accepted = jax.lax.while_loop(searching, shorten, start)
    nothing = Trial(*(jnp.zeros(()) for _ in Trial._fields))
    return Search(
        jnp.where(accepted, theta + fraction * step, theta),
        jnp.where(accepted, fraction, 0.0),
        jax.tree.map(lambda t, z: jnp.where(accepted, t, z), trial, nothing),
    )


def flatten(params: object) -> tuple[Vector, Callable[[Vector], object]]:
    """Parameters as one vector, and the way back."""
    return ravel_pytree(params)


# What a step did; the number is what the metrics record as `cpo_case`.
RECOVER, FROM_OUTSIDE, FROM_INSIDE, UNCONSTRAINED = 0, 1, 2, 3

TINY = 1e-8


class StepModel(NamedTuple):
    """The linear and quadratic model of a step: H^-1 g, H^-1 b, q = g.H^-1 g, r = g.H^-1 b, s = b.H^-1 b, and c."""

    h_g: jax.Array
    h_b: jax.Array
    q: jax.Array
    r: jax.Array
    s: jax.Array
    c: jax.Array


def _no_divergence(cost_change: jax.Array) -> jax.Array:
    return jnp.zeros_like(cost_change)


class FullStep(NamedTuple):
    """What a rule chooses: the step before the line search, and what the metrics report of it."""

    step: jax.Array
    case: jax.Array
    lam: jax.Array
    nu: jax.Array
    # Divergence that a change of cost adds to the KL.
    extra_divergence: Callable[[jax.Array], jax.Array] = _no_divergence


StepRule = Callable[[StepModel, TrustRegionConfig], FullStep]


def cost_step(model: StepModel, config: TrustRegionConfig) -> jax.Array:
    """The steepest descent in cost, to the edge of the region."""
    return -jnp.sqrt(2 * config.kl / jnp.maximum(model.s, TINY)) * model.h_b


def trust_region_step(
    policy: Policy, params: Any, batch: ActorBatch, c: jax.Array, rule: StepRule, config: TrustRegionConfig
) -> tuple[Any, Metrics]:
    """One update of the policy. `c` is positive when the limit is exceeded."""
    theta, unflatten = flatten(params)
    observations, actions = batch.observations, batch.actions
    reward_advantage, cost_advantage = batch.reward_advantage, batch.cost_advantage

    def outputs_of(vector: jax.Array) -> Any:
        return policy.outputs(unflatten(vector), observations)

    old = outputs_of(theta)
    old_log_prob = policy.log_prob(old, actions)

    def surrogate(advantage: jax.Array) -> Callable[[jax.Array], jax.Array]:
        """theta -> E[pi/pi_k A] (equation 13)."""
        return lambda v: (jnp.exp(policy.log_prob(outputs_of(v), actions) - old_log_prob) * advantage).mean()

    g = jax.grad(surrogate(reward_advantage))(theta)
    b = jax.grad(surrogate(cost_advantage))(theta)
    metric_states = observations[fisher_rows(len(observations), config.fisher_states)]
    product = fisher_product(lambda v: policy.outputs(unflatten(v), metric_states), policy.kl, theta)
    h_g, h_b = solve(product, g, config), solve(product, b, config)
    full = rule(StepModel(h_g, h_b, g @ h_g, g @ h_b, b @ h_b, c), config)

    def trial_of(vector: jax.Array) -> Trial:
        new = outputs_of(vector)
        ratio = jnp.exp(policy.log_prob(new, actions) - old_log_prob)
        return Trial(
            policy.kl(new, old).mean(),
            ((ratio - 1) * reward_advantage).mean(),
            ((ratio - 1) * cost_advantage).mean(),
        )

    def acceptable(trial: Trial) -> jax.Array:
        # Inside the limit the reward must not fall, and the cost may rise into the slack. Outside, the cost must not
        # rise and the reward may fall: a step that had to raise it as well could freeze the policy in violation.
        improves = (c > 0) | (full.case == RECOVER) | (trial.reward_gain >= 0)
        divergence = trial.kl + full.extra_divergence(trial.cost_change)
        return (divergence <= config.kl) & improves & (trial.cost_change <= jnp.maximum(-c, 0.0))

    search = line_search(trial_of, acceptable, theta, full.step, config)
    metrics = {
        "kl": search.trial.kl,
        "cpo_case": full.case,
        "step_fraction": search.fraction,
        "reward_gain": search.trial.reward_gain,
        "cost_change": search.trial.cost_change,
        "lambda": full.lam,
        "nu": full.nu,
    }
    return unflatten(search.theta), metrics
