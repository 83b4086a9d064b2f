"""The loop of actor and environment that evaluation, critic bias, videos and replays share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from flashbulb.envs import CostVectorEnv

Act = Callable[[np.ndarray, int], np.ndarray]  # observations and number of the step -> actions for the environment


class RolloutStep(NamedTuple):
    """One step of all environments; arrays have a row per environment.

    Where an episode ended, `next_observations` has the first observation of the next one, and `info["final_obs"]` the
    last of its own.
    """

    t: int
    observations: np.ndarray
    actions: np.ndarray
    next_observations: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    info: dict[str, Any]

    @property
    def ended(self) -> np.ndarray:
        return self.terminated | self.truncated


def rollout(env: CostVectorEnv, act: Act, observations: np.ndarray, steps: int | None = None) -> Iterator[RolloutStep]:
    """Step the environment from `observations`, its current ones, for `steps` or until the caller stops asking."""
    for t in itertools.count() if steps is None else range(steps):
        actions = act(observations, t)
        following, rewards, costs, terminated, truncated, info = env.step(actions)
        yield RolloutStep(t, observations, actions, following, rewards, costs, terminated, truncated, info)
        observations = following
