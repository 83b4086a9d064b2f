"""User environments: good ones, and one for each mistake that `flashbulb check` explains."""

import os
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit


class Walk(gymnasium.Env):
    """A noisy walk on a line; beyond 1 it costs, beyond 3 it ends."""

    def __init__(self):
        self.observation_space = spaces.Box(-10.0, 10.0, (3,), np.float32)
        self.action_space = spaces.Box(np.array([-1.0, -0.5], np.float32), np.array([1.0, 2.0], np.float32))
        self.x = np.zeros(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.5, 0.5, 3)
        return self.see(), {}

    def see(self):
        return np.clip(self.x, -10, 10).astype(np.float32)

    def advance(self, action):
        self.x[:2] += 0.1 * np.asarray(action, np.float64) + 0.02 * self.np_random.normal(size=2)
        self.x[2] = action[0] * action[1]
        return self.see(), float(self.x[0]), float(abs(self.x[0]) > 1), bool(abs(self.x[0]) > 3)

    def step(self, action):
        obs, reward, cost, terminated = self.advance(action)
        return obs, reward, terminated, False, {"cost": cost}


class SixTuple(Walk):
    """Safety-Gymnasium's form of answer, with a limit of its own."""

    max_episode_steps = 25

    def reset(self, *, seed=None, options=None):
        self.elapsed = 0
        return super().reset(seed=seed)

    def step(self, action):
        obs, reward, cost, terminated = self.advance(action)
        self.elapsed += 1
        return obs, reward, cost, terminated, self.elapsed >= self.max_episode_steps, {}


class Buttons(SixTuple):
    """Discrete actions that do not start at zero."""

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(3, start=5)

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(np.array([action - 6.0, 0.5]))


class Crooked(SixTuple):
    """Many actions, with bounds whose centre and half width do not add up to them in single precision."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        low = rng.uniform(-3, 1, 60).astype(np.float32)
        self.action_space = spaces.Box(low, low + rng.uniform(0.1, 5, 60).astype(np.float32))

    def step(self, action):
        return super().step(action[:2])


def make_crooked():
    return Crooked()


def make_walk():
    return TimeLimit(Walk(), 30)


def make_six():
    return SixTuple()


def make_buttons():
    return Buttons()


class Faulty(Walk):
    """A walk with one mistake, which `fault` names."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.count = 0
        if fault == "infinite_bounds":
            self.action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        if fault == "dictionary":
            self.observation_space = spaces.Dict({"x": self.observation_space})
        if fault == "multi_binary":
            self.action_space = spaces.MultiBinary(2)

    def reset(self, *, seed=None, options=None):
        self.elapsed = 0
        if self.fault == "seed_refused":
            raise TypeError("reset() got an unexpected keyword argument 'seed'")
        obs, info = super().reset(seed=None if self.fault == "unseeded" else seed)
        if self.fault == "reset_without_info":
            return obs
        return ({"x": obs}, info) if self.fault == "dictionary" else (obs, info)

    def step(self, action):
        self.count, self.elapsed = self.count + 1, self.elapsed + 1
        if self.fault == "raises":
            raise ZeroDivisionError("the wheel fell off")
        if self.fault == "dies" and self.count > 25:
            os._exit(3)
        if self.fault == "exits":
            sys.exit(0)
        if self.fault == "hangs":
            time.sleep(1e6)
        if self.fault == "slow":
            time.sleep(0.01)
        if self.fault == "multi_binary":
            action = action.astype(np.float64)
        obs, reward, cost, terminated = self.advance(action)
        wrong_cost = {"negative": -0.5, "nan_cost": np.nan, "two_costs": np.array([0.0, 1.0])}
        cost = wrong_cost.get(self.fault, cost)
        if self.fault == "outside":
            obs[1] = 11.0
        if self.fault == "nan_observation":
            obs[0] = np.nan
        if self.fault == "shape":
            obs = obs[:2]
        if self.fault == "double":
            obs = obs.astype(np.float64)
        if self.fault == "nan_reward":
            reward = np.inf
        if self.fault == "four":
            return obs, reward, terminated, {"cost": cost}
        if self.fault == "time_as_termination":
            return obs, reward, self.elapsed >= 20, False, {"cost": cost}
        if self.fault == "dictionary":
            obs = {"x": obs}
        return obs, reward, terminated, False, {} if self.fault == "no_cost" else {"cost": cost}


def __getattr__(name):
    """`broken_X` makes a walk with fault X; all but those without end have a time limit."""
    if not name.startswith("broken_"):
        raise AttributeError(name)
    fault = name.removeprefix("broken_")
    limited = fault not in ("endless", "time_as_termination", "four")
    return lambda: TimeLimit(Faulty(fault), 30) if limited else Faulty(fault)


gymnasium.register("StrangeWalk-v0", entry_point=Walk, max_episode_steps=40)


class TwoCosts(SixTuple):
    """Costs with names: beyond 1 on either axis. Asked for one number it reports none, so that it is their sum."""

    def step(self, action):
        obs, reward, cost, terminated = self.advance(action)
        self.elapsed += 1
        costs = {"far": cost, "above": float(abs(self.x[1]) > 0.3)}
        return obs, reward, terminated, self.elapsed >= self.max_episode_steps, {"costs": costs}


def make_two_costs():
    return TwoCosts()


class NowAndThen(TwoCosts):
    """Leaves a cost out where it is safe."""

    def step(self, action):
        *result, info = super().step(action)
        return *result, {"costs": {name: cost for name, cost in info["costs"].items() if cost or name == "far"}}


def make_now_and_then():
    return NowAndThen()


class Bumper(Walk):
    """An environment that says where its lidar is: the last two entries."""

    lidar_groups = ((1, 3),)


def make_bumper():
    return TimeLimit(Bumper(), 30)


def broken_lidar():
    env = make_bumper()
    env.unwrapped.lidar_groups = ((1, 4),)
    return env
