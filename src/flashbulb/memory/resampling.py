"""Importance resampling of a data set's unsafe states towards the current policy.

The ideal weight of a state is the ratio of visitation frequencies d^pi(s) / d^mu(s), which is unknown. Products of
action ratios along trajectories estimate it without bias but with too much variance. We use the ratio of one step,
pi(a|s) / mu(a|s): a state counts by how much more likely the current policy is to take the recorded action there. The
behaviour mu is not recorded and is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashbulb.memory.offline import Transitions

# (observations, actions in the environment's units) -> log pi(a|s), up to a constant
LogLikelihood = Callable[[np.ndarray, np.ndarray], np.ndarray]

RIDGE = 1e-6  # per observation, of standardised inputs: only to make the regression always solvable
LEAST_SPREAD = 1e-3  # of a behaviour's residual, against records of a deterministic policy


class OfflinePool(NamedTuple):
    """The unsafe part of a data set, with the likelihood that its behaviour gave to each action."""

    states: np.ndarray  # (N, n) raw
    actions: np.ndarray  # (N, ...)
    log_mu: np.ndarray  # (N,)

    @classmethod
    def from_transitions(cls, transitions: Transitions) -> OfflinePool:
        """mu is fitted on all transitions, safe ones included; only the unsafe ones are supplied."""
        unsafe = transitions.costs > 0
        log_mu = behaviour_log_likelihood(transitions.observations, transitions.actions)
        return cls(transitions.observations[unsafe], transitions.actions[unsafe], log_mu[unsafe])

    def weights(self, log_pi: LogLikelihood, clip: float) -> np.ndarray:
        return importance_weights(np.asarray(log_pi(self.states, self.actions), np.float64) - self.log_mu, clip)


def behaviour_log_likelihood(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """log mu(a|s) of every row under a behaviour fitted to all rows.

    Continuous actions: a diagonal Gaussian around a linear function of the standardised observation. Discrete ones:
    how often each was taken, whatever the state, with one taken for granted.
    """
    if actions.dtype.kind in "iub" and actions.ndim == 1:
        _, which, counts = np.unique(actions, return_inverse=True, return_counts=True)
        return np.log((counts + 1) / (counts + 1).sum())[which]
    x = np.asarray(observations, np.float64)
    spread = x.std(axis=0)
    x = np.c_[(x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0), np.ones(len(x))]
    a = np.asarray(actions, np.float64).reshape(len(x), -1)
    slope = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ a)
    residual = a - x @ slope
    std = np.maximum(residual.std(axis=0), LEAST_SPREAD)
    return (-0.5 * (residual / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)


def importance_weights(log_ratio: np.ndarray, clip: float) -> np.ndarray:
    """Self-normalised weights (their sum is 1); before the last normalisation none exceeds `clip` average ones."""
    ratio = np.exp(log_ratio - log_ratio.max())
    ratio = np.minimum(ratio / ratio.mean(), clip)
    return ratio / ratio.sum()


def effective_sample_size(weights: np.ndarray) -> float:
    """1 / sum w^2: how many equally weighted states would say as much (Kish)."""
    return float(1.0 / np.square(weights).sum())


def systematic_resample(weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` indices, each drawn within one of `count * weight` times: the resampling of least variance.

    With equal weights and a full count every state comes exactly once.
    """
    if count == 0:
        return np.zeros(0, np.int64)
    marks = (np.arange(count) + rng.random()) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), marks, side="right"), len(weights) - 1)
