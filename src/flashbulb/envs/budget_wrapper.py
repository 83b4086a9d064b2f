"""Saute's augmented environment: the last entry of each observation is the rest of the episode's cost budget."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import CostVectorEnv, Info, State, StepResult, env_rows, lidar_groups_of
from flashbulb.errors import UsageError

SPENT = -1.0  # lower bound of the entry: below zero nothing depends on its value


class BudgetWrapper:
    """Adds one entry to the observation: z = remaining budget / cost limit.

    z starts at budget / limit, every cost reduces it, and z >= 0 means that the episode is within its budget. Rewards
    and costs pass unchanged; the algorithm reshapes the reward. In the step in which an episode ends, the final
    observation has the remaining budget of that episode, and `obs` the budget of the next one.
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
        self.lidar_groups = lidar_groups_of(env)  # unchanged: the new entry is the last one
        space = env.single_observation_space
        low, high = np.append(space.low, SPENT), np.append(space.high, np.inf)
        dtype = space.dtype.type
        self.single_observation_space: spaces.Space = spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
        self._start = np.zeros(self.num_envs)
        self.set_budget(budget)
        self._left = self._start.copy()  # in units of cost, where whole costs stay exact

    def set_budget(self, budget: float) -> None:
        """Set the undiscounted cost budget of the episodes that begin from now on."""
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

    def get_state(self, indices: np.ndarray | None = None) -> State:
        rows = env_rows(indices, self.num_envs)
        own = {"budget_left": self._left[rows], "budget_start": self._start[rows]}
        return self.env.get_state(indices) | own

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        inner = dict(state)
        left, start = inner.pop("budget_left"), inner.pop("budget_start")
        self.env.set_state(inner, indices)
        rows = env_rows(indices, self.num_envs)
        self._left[rows], self._start[rows] = left, start

    def observe(self) -> np.ndarray:
        return self._augment(self.env.observe(), self._left)

    def close(self) -> None:
        self.env.close()


def discounted_share(discount: float, steps: int) -> float:
    """The discounted sum of a cost of 1 / steps in each of `steps` steps; its undiscounted sum is 1."""
    return 1.0 if discount == 1.0 else (1 - discount**steps) / (1 - discount) / steps
