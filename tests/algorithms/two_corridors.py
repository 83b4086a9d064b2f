"""Two corridors side by side, each with a cost of its own: a problem with two constraints, small enough for paper.

A walker in the plane starts each episode at (0, 0), steps by at most 0.1 along either axis, is paid x + y at every
step, and pays a cost "right" where x is beyond 0.5 and a cost "up" where y is. The axes do not depend on each other, so
the best return under two limits is the sum of the corridor's best under each (`corridor.best_return`).
"""

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import final_info
from tests.algorithms.corridor import EDGE, STEPS, STRIDE


class TwoCorridors:
    env_id = "TwoCorridors"
    max_episode_steps = STEPS
    cost_names = ("right", "up")

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._place, self._t = np.zeros((num_envs, 2)), np.zeros(num_envs, np.int64)

    def reset(self, seed=None):
        self._place[:], self._t[:] = 0.0, 0
        return self.observe(), {}

    def step(self, actions):
        self._place = np.clip(self._place + STRIDE * np.clip(actions, -1, 1), -1.0, 1.0)
        self._t = self._t + 1
        reward, over = self._place.sum(axis=1), (self._place > EDGE + 1e-9).astype(float)
        final, truncated = self.observe(), self._t >= STEPS
        self._place = np.where(truncated[:, None], 0.0, self._place)
        self._t = np.where(truncated, 0, self._t)
        info = final_info(final, truncated) | {"costs": {"right": over[:, 0], "up": over[:, 1]}}
        return self.observe(), reward, over.sum(axis=1), np.zeros_like(truncated), truncated, info

    def observe(self):
        return np.c_[self._place, self._t / STEPS].astype(np.float32)

    def get_state(self, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        return {"place": self._place[rows], "t": self._t[rows]}

    def set_state(self, state, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        self._place[rows], self._t[rows] = state["place"], state["t"]

    def close(self):
        pass
