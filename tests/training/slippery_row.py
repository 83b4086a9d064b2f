"""A CostVectorEnv whose cost value is a linear system, with all that a measurement of bias must get right.

Five places in a row. An action above 0 goes right, otherwise left; with probability SLIP (the environment's own
randomness) the step goes the other way. Leaving the row on the left terminates, the right end is a wall, and being in
either of the two rightmost places costs 1. Episodes are far shorter than the discount's horizon.
"""

import numpy as np
from gymnasium import spaces

from flashbulb.envs import rng as generators
from flashbulb.envs.base import final_info

PLACES, SLIP, LIMIT, COSTLY = 5, 0.2, 15, 3


def cost_values(right, gamma):
    """V_C of every place for a policy that goes right with that probability; no time limit."""
    p = right * (1 - SLIP) + (1 - right) * SLIP
    transition, cost = np.zeros((PLACES, PLACES)), np.zeros(PLACES)
    for place in range(PLACES):
        for following, probability in ((min(place + 1, PLACES - 1), p), (place - 1, 1 - p)):
            if following >= 0:
                transition[place, following] += probability
                cost[place] += probability * (following >= COSTLY)
    return np.linalg.solve(np.eye(PLACES) - gamma * transition, cost)


class SlipperyRow:
    env_id = "SlipperyRow"
    max_episode_steps = LIMIT

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(0.0, 1.0, (PLACES,), np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.place, self.steps = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self.rngs = generators.pcg64_generators(0, num_envs)

    def reset(self, seed=None):
        if seed is not None:
            self.rngs = generators.pcg64_generators(seed, self.num_envs)
        self._begin(np.arange(self.num_envs))
        return self.observe(), {}

    def _begin(self, members):
        for i in members:
            self.place[i], self.steps[i] = self.rngs[i].integers(PLACES), 0

    def step(self, actions):
        slip = np.array([rng.random() < SLIP for rng in self.rngs])
        self.place = self.place + np.where((np.asarray(actions)[:, 0] > 0) ^ slip, 1, -1)
        terminated = self.place < 0
        self.place = np.clip(self.place, 0, PLACES - 1)
        cost = (self.place >= COSTLY).astype(float) * ~terminated
        self.steps = self.steps + 1
        truncated = self.steps >= LIMIT
        final, ended = self.observe(), terminated | truncated
        self._begin(np.flatnonzero(ended))
        return self.observe(), np.zeros(self.num_envs), cost, terminated, truncated, final_info(final, ended)

    def observe(self):
        return np.eye(PLACES, dtype=np.float32)[self.place]

    def get_state(self, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        rng = generators.pack_pcg64([self.rngs[i] for i in rows])
        return {"place": self.place[rows], "steps": self.steps[rows], "rng": rng}

    def set_state(self, state, members=None):
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        self.place[rows], self.steps[rows] = state["place"], state["steps"]
        for i, packed in zip(rows, state["rng"], strict=True):
            self.rngs[i] = generators.unpack_pcg64(packed)

    def close(self):
        pass
