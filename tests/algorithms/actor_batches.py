"""A small batch for the tests of actors, and a policy's densities once more in NumPy (float64)."""

import jax
import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.actor import StepInputs
from flashbulb.algorithms.policy import Gaussian, GaussianParams
from flashbulb.batch import ActorBatch, Constraint
from flashbulb.config import PolicyConfig

POLICY = Gaussian(spaces.Box(-1.0, 1.0, (2,), np.float32))


def example(states=50, seed=0):
    """A policy's parameters and a batch that it sampled."""
    rng = np.random.default_rng(seed)
    params = jax.tree.map(np.asarray, POLICY.init(jax.random.key(seed), 3, PolicyConfig(hidden=(5,))))
    params = GaussianParams(params.mean, np.array([-0.3, 0.2], np.float32))
    observations = rng.normal(size=(states, 3)).astype(np.float32)
    actions = rng.normal(size=(states, 2)).astype(np.float32)
    log_prob = log_density(params, observations, actions).astype(np.float32)
    a_r, a_c = rng.normal(size=(2, states)).astype(np.float32)
    return params, ActorBatch(observations, actions, log_prob, a_r, a_c)


def inputs(batch, lam=0.0, rate=0.0, key=None):
    """What a step takes, with a multiplier and no other constraint."""
    constraint = Constraint(np.float32(0), np.float32(0), np.float32(lam))
    key = jax.random.key(0) if key is None else key
    return StepInputs(batch, constraint, np.float32(rate), np.float32(0), key)


def moved(params, seed=1, by=0.05):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda p: (p + by * rng.normal(size=p.shape)).astype(np.float32), params)


def mean_of(params, x):
    x = np.asarray(x, np.float64)
    for layer in params.mean[:-1]:
        x = np.tanh(x @ layer.weight.astype(np.float64) + layer.bias)
    return x @ params.mean[-1].weight.astype(np.float64) + params.mean[-1].bias


def log_density(params, observations, actions):
    out = np.zeros(len(observations))
    std = np.exp(params.log_std.astype(np.float64))
    for i, (mean, action) in enumerate(zip(mean_of(params, observations), actions, strict=True)):
        for k in range(2):
            out[i] += -((action[k] - mean[k]) ** 2) / (2 * std[k] ** 2) - np.log(std[k] * np.sqrt(2 * np.pi))
    return out


def divergence(p, q, observations):
    """KL(p || q) of each state, summed over both action dimensions."""
    out = np.zeros(len(observations))
    s, t = np.exp(p.log_std.astype(np.float64)), np.exp(q.log_std.astype(np.float64))
    for i, (m, n) in enumerate(zip(mean_of(p, observations), mean_of(q, observations), strict=True)):
        for k in range(2):
            out[i] += np.log(t[k] / s[k]) + (s[k] ** 2 + (m[k] - n[k]) ** 2) / (2 * t[k] ** 2) - 0.5
    return out


def numerical_gradient(loss, params, step=1e-5):
    """Central differences of `loss(params)` in float64, leaf by leaf."""
    leaves, structure = jax.tree.flatten(jax.tree.map(lambda p: np.asarray(p, np.float64), params))
    grads = [np.zeros_like(leaf) for leaf in leaves]
    for leaf, grad in zip(leaves, grads, strict=True):
        for index in np.ndindex(leaf.shape):
            kept = leaf[index]
            leaf[index] = kept + step
            above = loss(jax.tree.unflatten(structure, leaves))
            leaf[index] = kept - step
            below = loss(jax.tree.unflatten(structure, leaves))
            leaf[index] = kept
            grad[index] = (above - below) / (2 * step)
    return jax.tree.unflatten(structure, grads)
