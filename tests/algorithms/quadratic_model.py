"""Random step problems of four dimensions, and a real policy to step with, for the tests of trust-region rules."""

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.actor import StepInputs
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.trust_region import StepModel
from flashbulb.batch import ActorBatch, Constraint
from flashbulb.config import PolicyConfig

DELTA = 0.01


def random_problem(seed):
    """H, g, b, and a generator for what else is random."""
    rng = np.random.default_rng(seed)
    n = 4
    root = rng.standard_normal((n, n))
    hessian = root @ root.T + 0.1 * np.eye(n)
    return hessian, rng.standard_normal(n), rng.standard_normal(n), rng


def model_of(hessian, g, b, c):
    h_g, h_b = np.linalg.solve(hessian, g), np.linalg.solve(hessian, b)
    return StepModel(*(jnp.asarray(x) for x in (h_g, h_b, g @ h_g, g @ h_b, b @ h_b, c)))


def solve_rule(rule, hessian, g, b, c, config):
    """The full step of a rule, in double precision."""
    with jax.enable_x64(True):
        return np.asarray(rule(model_of(hessian, g, b, c), config).step)


class RealPolicy:
    """A policy, a batch that it sampled, and what a new policy changes by that batch. What pays also costs."""

    def __init__(self, reward_against_cost=1.0):
        space = spaces.Box(-np.inf, np.inf, (3,)), spaces.Box(-1, 1, (2,))
        self.policy = policy_for(*space)
        self.params = self.policy.init(jax.random.key(0), 3, PolicyConfig(hidden=(8,)))
        observations = jax.random.normal(jax.random.key(1), (500, 3))
        noise = np.random.default_rng(0).standard_normal((500, 2))
        actions = jnp.asarray(
            self.policy.act(jax.tree.map(np.asarray, self.params), np.asarray(observations), noise), jnp.float32
        )
        reward, cost = reward_against_cost * actions[:, 0] + 0.3 * observations[:, 0] * actions[:, 1], actions[:, 0]
        log_prob = self.policy.log_prob(self.policy.outputs(self.params, observations), actions)
        self.batch = ActorBatch(observations, actions, log_prob, reward - reward.mean(), cost - cost.mean())

    def inputs(self, c, excess=None):
        constraint = Constraint(*(jnp.float32(x) for x in (1000 * c if excess is None else excess, c, 0)))
        return StepInputs(self.batch, constraint, jnp.float32(0), jnp.float32(0), jax.random.key(0))

    def changes(self, new):
        """KL, reward gain and change of cost per step of new parameters, by their definitions."""
        batch, policy = self.batch, self.policy
        outputs = policy.outputs(new, batch.observations)
        ratio = jnp.exp(policy.log_prob(outputs, batch.actions) - batch.log_prob)
        kl = policy.kl(outputs, policy.outputs(self.params, batch.observations)).mean()
        gains = ((ratio - 1) * advantage for advantage in (batch.reward_advantage, batch.cost_advantage))
        return float(kl), *(float(gain.mean()) for gain in gains)
