"""A CostVectorEnv small enough to solve on paper.

A walker on a line starts each episode at 0, steps by at most 0.1, is paid its position (between -1 and 1) at every
step, and pays a cost of 1 wherever it is beyond 0.5. With a limit of d steps beyond, the best it can do is to walk to
0.5, wait there, and spend the last d steps (five of which bring it to 1) beyond.
"""

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import final_info

STEPS, STRIDE, EDGE = 40, 0.1, 0.5


def best_return(limit: int) -> float:
    """Of all policies whose episodes cost at most `limit`."""
    x, total = 0.0, 0.0
    for t in range(STEPS):
        ceiling = 1.0 if t >= STEPS - limit else EDGE
        x = min(x + STRIDE, ceiling)
        total += x
    return total


class Corridor:
    env_id = "Corridor"
    max_episode_steps = STEPS

    def __init__(self, num_envs: int, discrete: bool = False) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = spaces.Discrete(3) if discrete else spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._x, self._t = np.zeros(num_envs), np.zeros(num_envs, np.int64)

    def reset(self, seed=None):
        self._x[:], self._t[:] = 0.0, 0
        return self.observe(), {}

    def step(self, actions):
        actions = np.asarray(actions, np.float64)
        discrete = isinstance(self.single_action_space, spaces.Discrete)
        move = actions - 1 if discrete else np.clip(actions[:, 0], -1, 1)
        self._x = np.clip(self._x + STRIDE * move, -1.0, 1.0)
        self._t = self._t + 1
        reward, cost = self._x.copy(), (self._x > EDGE + 1e-9).astype(float)
        final, truncated = self.observe(), self._t >= STEPS
        self._x, self._t = np.where(truncated, 0.0, self._x), np.where(truncated, 0, self._t)
        return self.observe(), reward, cost, np.zeros_like(truncated), truncated, final_info(final, truncated)

    def observe(self):
        return np.stack([self._x, self._t / STEPS], axis=1).astype(np.float32)

    def get_state(self, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        return {"x": self._x[rows], "t": self._t[rows]}

    def set_state(self, state, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        self._x[rows], self._t[rows] = state["x"], state["t"]

    def close(self):
        pass
