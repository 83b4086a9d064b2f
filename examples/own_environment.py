"""Check an environment of your own, train on it with a callback, and look at what was learned.

python examples/own_environment.py [STEPS]
"""

import sys

import gymnasium
import numpy as np

import flashbulb
from flashbulb.training.callbacks import StopWhenLimitIsKept


class Tank(gymnasium.Env):
    """Fill a leaking tank as high as possible; each step above the mark costs 1."""

    observation_space = gymnasium.spaces.Box(0, 2, (1,))
    action_space = gymnasium.spaces.Box(0, 1, (1,))

    def __init__(self, mark=1.0):
        self.mark = mark

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.level = 0, self.np_random.uniform(0, 0.5)
        return self._observe(), {}

    def step(self, action):
        self.t += 1
        self.level = min(0.9 * self.level + 0.2 * float(action[0]), 2.0)
        return self._observe(), self.level, False, self.t >= 50, {"cost": float(self.level > self.mark)}

    def _observe(self):
        return np.array([self.level], np.float32)


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    findings = flashbulb.check(Tank)
    print("ready to train" if not findings.problems else findings.problems)
    result = flashbulb.train(
        "mice-pid",
        Tank,
        env_kwargs={"mark": 1.2},
        steps=steps,
        steps_per_iteration=2_000,
        cost_limit=5,
        callbacks=[StopWhenLimitIsKept(30)],
    )
    policy = flashbulb.load_policy(result.directory)
    for level in (0.2, 0.8, 1.3):
        print(f"at {level:.1f} the inflow is {float(policy.predict(np.array([level]))[0]):.2f}")
