"""Saute's augmented CostVectorEnv: each observation ends with what is left of the episode's cost budget."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import CostVectorEnv, Info, State, StepResult, lidar_groups_of
from flashbulb.errors import UsageError

SPENT = -1.0  # the entry stops here: below zero nothing depends on it any more


class BudgetWrapper:
    """A CostVectorEnv whose observation has one entry more, z = what is left of the budget / cost limit.

    z starts at budget / limit, each cost takes its share, and z >= 0 says that the episode is within its budget.
    Rewards and costs pass unchanged; who learns from them reshapes the reward (`learn/budget.py`). Within the step in
    which an episode ends, the final observation shows what was left of *its* budget, and the first observation of
    the next episode the budget that is set by then.
    """

    def __init__(self, env: CostVectorEnv, limit: float, budget: float, discount: float) -> None:
        if not isinstance(env.single_observation_space, spaces.Box) or len(env.single_observation_space.shape) != 1:
            raise UsageError(
                f"env: observations of {env.single_observation_space} cannot carry a budget; they must be a Box of one "
                "dimension (wrap the environment to flatten a dictionary or an image)."
            )
        self.env, self.limit, self.discount = env, limit, discount
        self.env_id, self.num_envs, self.max_episode_steps = env.env_id, env.num_envs, env.max_episode_steps
        self.single_action_space = env.single_action_space
        self.rings = lidar_groups_of(env)  # the budget comes after them
        space = env.single_observation_space
        low, high = np.append(space.low, SPENT), np.append(space.high, np.inf)
        dtype = space.dtype.type
        self.single_observation_space: spaces.Space = spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
        self._start = np.zeros(self.num_envs)
        self.set_budget(budget)
        self._left = self._start.copy()  # in units of cost, where whole costs stay exact

    def set_budget(self, budget: float) -> None:
        """What the episodes that begin from now on may cost, undiscounted."""
        self._start[:] = budget * discounted_share(self.discount, self.max_episode_steps)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        obs, info = self.env.reset(seed)
        self._left = self._start.copy()
        return self._augment(obs, self._left), info

    def step(self, actions: np.ndarray) -> StepResult:
        obs, reward, cost, terminated, truncated, info = self.env.step(actions)
        left = (self._left - cost) / self.discount
        self._left = np.where(terminated | truncated, self._start, left)
        info = info | {"final_obs": self._augment(info["final_obs"], left)}
        return self._augment(obs, self._left), reward, cost, terminated, truncated, info

    def _augment(self, obs: np.ndarray, left: np.ndarray) -> np.ndarray:
        z = np.maximum(left / (self.limit or 1.0), SPENT)
        return np.concatenate([obs, z[:, None]], axis=1).astype(obs.dtype)

    def get_state(self, members: np.ndarray | None = None) -> State:
        rows = self._rows(members)
        own = {"budget_left": self._left[rows], "budget_start": self._start[rows]}
        return self.env.get_state(members) | own

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        inner = dict(state)
        left, start = inner.pop("budget_left"), inner.pop("budget_start")
        self.env.set_state(inner, members)
        rows = self._rows(members)
        self._left[rows], self._start[rows] = left, start

    def observe(self) -> np.ndarray:
        return self._augment(self.env.observe(), self._left)

    def close(self) -> None:
        self.env.close()

    def _rows(self, members: np.ndarray | None) -> np.ndarray:
        return np.arange(self.num_envs)[slice(None) if members is None else members]


def discounted_share(discount: float, steps: int) -> float:
    """The discounted sum of a cost of 1 / steps in each of `steps` steps: what an undiscounted 1 becomes."""
    return 1.0 if discount == 1.0 else (1 - discount**steps) / (1 - discount) / steps
