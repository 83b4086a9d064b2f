"""Stochastic policies: a Gaussian for Box actions, a categorical for Discrete ones, behind one set of functions.

A policy's *outputs* are the parameters of its distribution at each state; densities, divergences and the
Fisher metric are functions of outputs alone. Sampling is a deterministic function of outputs and noise, so
that the noise of a whole iteration is drawn at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.networks import Network, forward, forward_numpy, init_network
from flashbulb.config import PolicyConfig
from flashbulb.errors import UsageError

Outputs = Any


class Policy(Protocol):
    """Functions of a policy's parameters; the parameters live in the learner's state."""

    def init(self, key: jax.Array, observation_size: int, config: PolicyConfig) -> Any: ...
    def outputs(self, params: Any, observations: jax.Array) -> Outputs: ...
    def keep_noise(self, params: Any, config: PolicyConfig) -> Any: ...
    def log_prob(self, outputs: Outputs, actions: jax.Array) -> jax.Array: ...
    def kl(self, p: Outputs, q: Outputs) -> jax.Array: ...
    def entropy(self, outputs: Outputs) -> jax.Array: ...
    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array: ...
    def act(self, params: Any, observations: np.ndarray, noise: np.ndarray | None) -> np.ndarray: ...
    def to_env(self, actions: np.ndarray) -> np.ndarray: ...
    def from_env(self, actions: np.ndarray) -> np.ndarray: ...


class GaussianParams(NamedTuple):
    mean: Network
    log_std: Any  # (actions,) learned, the same in every state


class GaussianOutputs(NamedTuple):
    mean: jax.Array  # (..., actions)
    log_std: jax.Array  # (actions,)


class Gaussian:
    """Diagonal Gaussian over actions scaled to [-1, 1]; the environment's bounds are applied on the way out."""

    def __init__(self, space: spaces.Box) -> None:
        self.size = int(np.prod(space.shape))
        bounded = np.isfinite(space.low).all() and np.isfinite(space.high).all()
        low = np.where(bounded, space.low, -1.0).astype(np.float32).ravel()
        high = np.where(bounded, space.high, 1.0).astype(np.float32).ravel()
        self.centre, self.half_width, self.bounded = (low + high) / 2, (high - low) / 2, bool(bounded)
        self.shape = space.shape

    def init(self, key: jax.Array, observation_size: int, config: PolicyConfig) -> GaussianParams:
        # A small last layer: all states start with nearly the same action distribution.
        mean = init_network(key, (observation_size, *config.hidden, self.size), last_gain=0.01)
        shared = 0.5 * np.log(max(self.size, 2) / 2) if config.share_noise else 0.0
        return GaussianParams(mean, jnp.asarray(np.full(self.size, config.initial_log_std - shared, np.float32)))

    def outputs(self, params: GaussianParams, observations: jax.Array) -> GaussianOutputs:
        return GaussianOutputs(forward(params.mean, observations), params.log_std)

    def keep_noise(self, params: GaussianParams, config: PolicyConfig) -> GaussianParams:
        """The parameters, with no deviation below the least that is allowed."""
        if config.least_std == 0:
            return params
        return params._replace(log_std=np.maximum(params.log_std, np.float32(np.log(config.least_std))))

    def log_prob(self, outputs: GaussianOutputs, actions: jax.Array) -> jax.Array:
        z = (actions - outputs.mean) * jnp.exp(-outputs.log_std)
        return (-0.5 * z**2 - outputs.log_std - 0.5 * jnp.log(2 * jnp.pi)).sum(-1)

    def kl(self, p: GaussianOutputs, q: GaussianOutputs) -> jax.Array:
        """D_KL(p || q) of each state, *summed* over action dimensions."""
        ratio = jnp.exp(2 * (p.log_std - q.log_std))
        shift = ((p.mean - q.mean) * jnp.exp(-q.log_std)) ** 2
        return (0.5 * (ratio + shift - 1) + q.log_std - p.log_std).sum(-1)

    def entropy(self, outputs: GaussianOutputs) -> jax.Array:
        return (outputs.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e)).sum(-1)

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, (*shape, self.size), jnp.float32)

    def act(self, params: GaussianParams, observations: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        mean = forward_numpy(params.mean, observations)
        return mean if noise is None else mean + np.exp(params.log_std) * noise

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        bounded = np.minimum(np.maximum(actions, -1.0), 1.0) if self.bounded else actions  # np.clip takes longer
        scaled = self.half_width * bounded
        scaled += self.centre
        return scaled.reshape(-1, *self.shape)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """The action behind the environment's; of a clipped one, the bound."""
        return (np.asarray(actions, np.float32).reshape(-1, self.size) - self.centre) / self.half_width


class Categorical:
    """Softmax over a finite set of actions; noise is Gumbel, so that sampling is an argmax.

    Outputs are the logits before normalisation: in them, and not in log-probabilities, KL has its curvature.
    """

    def __init__(self, space: spaces.Discrete) -> None:
        self.size = int(space.n)
        self.start = int(space.start)

    def init(self, key: jax.Array, observation_size: int, config: PolicyConfig) -> Network:
        return init_network(key, (observation_size, *config.hidden, self.size), last_gain=0.01)

    def outputs(self, params: Network, observations: jax.Array) -> jax.Array:
        return forward(params, observations)

    def keep_noise(self, params: Network, config: PolicyConfig) -> Network:
        return params

    def log_prob(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        chosen = actions.astype(jnp.int32)[..., None]
        return jnp.take_along_axis(jax.nn.log_softmax(outputs), chosen, axis=-1)[..., 0]

    def kl(self, p: jax.Array, q: jax.Array) -> jax.Array:
        log_p, log_q = jax.nn.log_softmax(p), jax.nn.log_softmax(q)
        return (jnp.exp(log_p) * (log_p - log_q)).sum(-1)

    def entropy(self, outputs: jax.Array) -> jax.Array:
        log_p = jax.nn.log_softmax(outputs)
        return -(jnp.exp(log_p) * log_p).sum(-1)

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.gumbel(key, (*shape, self.size), jnp.float32)

    def act(self, params: Network, observations: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        logits = forward_numpy(params, observations)
        return np.argmax(logits if noise is None else logits + noise, axis=-1)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        return actions + self.start

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        return np.asarray(actions) - self.start


def policy_for(observations: spaces.Space, actions: spaces.Space) -> Policy:
    """The policy that fits a task's spaces, or one sentence on why none does."""
    if not isinstance(observations, spaces.Box) or len(observations.shape) != 1:
        raise UsageError(
            f"env: observations of {observations} are not supported; they must be a Box of one dimension "
            "(wrap the environment to flatten a dictionary or an image)."
        )
    if isinstance(actions, spaces.Box):
        return Gaussian(actions)
    if isinstance(actions, spaces.Discrete):
        return Categorical(actions)
    raise UsageError(f"env: actions of {actions} are not supported; they must be Box or Discrete.")
