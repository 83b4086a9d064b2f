"""Training's own CPO step on a tabular softmax policy, with exact expectations in place of a batch; its own margin.

The only module of `theory` that uses `algorithms`: Theorem 2 is about the policy that the update returns, and the
frequency of violations about the margin that the controller keeps, so both must be checked on the implementation that
training uses.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete

from flashbulb.algorithms.cpo import cpo_rule, primal_step, solve_dual
from flashbulb.algorithms.margin import Margin, margin_step
from flashbulb.algorithms.policy import Categorical
from flashbulb.algorithms.trust_region import trust_region_step
from flashbulb.batch import ActorBatch
from flashbulb.config import MarginConfig, TrustRegionConfig
from flashbulb.theory.cmdp import Table


class TabularSoftmax(Categorical):
    """The parameters are the logits (S, A), an observation is the index of a state, and the KL has a weight per row."""

    def __init__(self, actions: int, row_weights: jax.Array) -> None:
        super().__init__(Discrete(actions))
        self.row_weights = row_weights

    def outputs(self, params: Any, observations: jax.Array) -> jax.Array:
        return params[observations]

    def kl(self, p: jax.Array, q: jax.Array) -> jax.Array:
        return self.row_weights * super().kl(p, q)


@partial(jax.jit, static_argnames="config")
def _step(
    logits: jax.Array,
    occupied: jax.Array,
    reward_advantage: jax.Array,
    cost_advantage: jax.Array,
    constraint: jax.Array,
    config: TrustRegionConfig,
) -> tuple[jax.Array, jax.Array]:
    """Every pair (s, a) is a row of the batch; the weights turn the mean over rows into E over d^pi and pi."""
    states, actions = logits.shape
    rows = jnp.arange(states * actions)
    state, action = rows // actions, rows % actions
    weight = (occupied[:, None] * jax.nn.softmax(logits) * states * actions).ravel()
    advantages = weight * reward_advantage.ravel(), weight * cost_advantage.ravel()
    batch = ActorBatch(state, action, jnp.zeros(len(rows)), *advantages)
    policy = TabularSoftmax(actions, states * occupied[state])
    new, metrics = trust_region_step(policy, logits, batch, constraint, cpo_rule, config)
    return new, metrics["cpo_case"]


def cpo_update(
    logits: np.ndarray,
    occupied: np.ndarray,
    reward_advantage: Table,
    cost_advantage: Table,
    constraint: float,
    config: TrustRegionConfig,
) -> tuple[np.ndarray, int]:
    """Logits of pi_{k+1}, and the case of CPO's step. `constraint` is in the units of `cost_advantage`."""
    arrays = (jnp.asarray(x, jnp.float32) for x in (logits, occupied, reward_advantage, cost_advantage, constraint))
    new, case = _step(*arrays, config)
    return np.asarray(new, np.float64), int(case)


@partial(jax.jit, static_argnames="config")
def _closed_form(
    h_g: jax.Array, h_b: jax.Array, g: jax.Array, b: jax.Array, c: jax.Array, config: TrustRegionConfig
) -> jax.Array:
    s = b @ h_b
    return primal_step(solve_dual(g @ h_g, g @ h_b, s, c, config), h_g, h_b, s, config)


def closed_form_step(h_g: np.ndarray, h_b: np.ndarray, g: np.ndarray, b: np.ndarray, c: float, kl: float) -> np.ndarray:
    """The step x of Appendix A.1 by training's solve_dual and primal_step, given H^-1 g and H^-1 b."""
    arrays = (jnp.asarray(x, jnp.float32) for x in (h_g, h_b, g, b, c))
    return np.asarray(_closed_form(*arrays, TrustRegionConfig(kl=kl, recover="infeasible")), np.float64)


@partial(jax.jit, static_argnames="config")
def _margin_run(
    start: Margin,
    possible: jax.Array,
    noise: jax.Array,
    error: jax.Array,
    limit: jax.Array,
    violations: jax.Array,
    config: MarginConfig,
) -> tuple[jax.Array, jax.Array]:
    def iteration(carry: tuple[Margin, jax.Array], sample: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        state, u = carry
        chosen = jnp.searchsorted(possible, limit - u, side="right") - 1
        cost = possible[jnp.maximum(chosen, 0)] + sample
        after, u, _ = margin_step(state, cost, error, limit, violations, config)  # type: ignore[arg-type]
        return (after, u), (cost, after.z)

    _, (costs, z) = jax.lax.scan(iteration, (start, start.z * error), noise)
    return costs, z


def margin_run(
    possible: np.ndarray, noise: np.ndarray, error: float, limit: float, violations: float, config: MarginConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Measured costs (N,) and z (N + 1,) of a run whose iterations take the largest of the `possible` J_C (ascending)
    that is at most limit - u, and measure it with noise; of the first iteration on, z moves."""
    start = Margin.start(violations, config)._replace(reached=jnp.float32(1))
    arrays = (jnp.asarray(x, jnp.float32) for x in (possible, noise, error, limit, violations))
    costs, z = _margin_run(start, *arrays, config)
    return np.asarray(costs), np.append(np.asarray(start.z), np.asarray(z))
