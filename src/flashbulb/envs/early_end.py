"""An environment whose episodes end as soon as their cost exceeds the limit (PPO with early termination)."""

from __future__ import annotations

import numpy as np

from flashbulb.envs.base import CostVectorEnv, Info, State, StepResult, env_rows, lidar_groups_of


class EarlyEnd:
    """Ends an episode, as terminated, in the step in which its cost exceeds `limit`.

    The environments of a batch cannot be reset one by one, so all are, and those that go on get their states back.
    """

    def __init__(self, env: CostVectorEnv, limit: float) -> None:
        self.env, self.limit = env, limit
        self.env_id, self.num_envs, self.max_episode_steps = env.env_id, env.num_envs, env.max_episode_steps
        self.single_action_space, self.lidar_groups = env.single_action_space, lidar_groups_of(env)
        self.single_observation_space = env.single_observation_space
        self._cost = np.zeros(self.num_envs)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        self._cost[:] = 0
        return self.env.reset(seed)

    def step(self, actions: np.ndarray) -> StepResult:
        obs, reward, cost, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        self._cost += cost
        over = (self._cost > self.limit) & ~ended
        self._cost[ended | over] = 0
        if over.any():
            final = np.where(ended[:, None], info["final_obs"], obs)
            self._restart(over)
            obs = self.env.observe()
            info = info | {"final_obs": final, "_final_obs": ended | over}
        return obs, reward, cost, terminated | over, truncated, info

    def _restart(self, over: np.ndarray) -> None:
        others = np.flatnonzero(~over)
        kept = self.env.get_state(others)
        self.env.reset()
        if len(others):
            self.env.set_state(kept, others)

    def get_state(self, indices: np.ndarray | None = None) -> State:
        return self.env.get_state(indices) | {"episode_cost": self._cost[env_rows(indices, self.num_envs)]}

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        inner = dict(state)
        self._cost[env_rows(indices, self.num_envs)] = inner.pop("episode_cost")
        self.env.set_state(inner, indices)

    def observe(self) -> np.ndarray:
        return self.env.observe()

    def close(self) -> None:
        self.env.close()
