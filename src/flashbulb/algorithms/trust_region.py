"""The geometry of a trust region: Fisher products, conjugate gradients, backtracking line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from flashbulb.algorithms.policy import Outputs
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
