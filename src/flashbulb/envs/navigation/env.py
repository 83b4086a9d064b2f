"""A batch of navigation tasks: physics, then judgement, then what the robots see, compiled over the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import Info, State, StepResult, final_info
from flashbulb.envs.navigation import button, circle, goal
from flashbulb.envs.navigation.layout import place_bodies, sample_layouts
from flashbulb.envs.navigation.layout_io import Layout, complete_layout, read_layout, write_layout
from flashbulb.envs.navigation.lidar import BINS
from flashbulb.envs.navigation.model import build_model
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, SimulatedPhysics, bound
from flashbulb.envs.navigation.point_dynamics import GlidingPhysics
from flashbulb.envs.navigation.random_streams import seeded
from flashbulb.envs.navigation.robots import ROBOTS
from flashbulb.envs.navigation.scoring import StepBuffers, empty_step_buffers, verdict_on
from flashbulb.envs.navigation.task_state import empty_batch, rules_of
from flashbulb.envs.navigation.tasks import Aim, parse
from flashbulb.errors import UsageError


class Judge(NamedTuple):
    """The compiled loops of one aim: `begin` an episode, `judge` a step, `fast_step` where it needs no simulator; and the
    names of its costs. The three `fast_step`s differ in the `judge` they call; made by a function of it, or with it as an
    argument, they would be compiled anew in every process: Numba keeps neither on disk."""

    begin: Callable[..., int]
    judge: Callable[..., int]
    fast_step: Callable[..., tuple[int, int]]
    costs: tuple[str, ...]


_read = verdict_on

JUDGES = {
    Aim.GOAL: Judge(goal.begin, goal.judge, goal.fast_step, goal.COSTS),
    Aim.CIRCLE: Judge(circle.begin, circle.judge, circle.fast_step, circle.COSTS),
    Aim.BUTTON: Judge(button.begin, button.judge, button.fast_step, button.COSTS),
}


class Navigation:
    """`num_envs` members of one navigation task behind the contract of `flashbulb.envs.base`."""

    def __init__(self, env_id: str, num_envs: int, seed: int, threads: int) -> None:
        robot, self.level = parse(env_id)
        self.robot = ROBOTS[robot]
        self.robot_name = robot
        self.env_id, self.num_envs, self.threads = env_id, num_envs, threads
        self.max_episode_steps, self.substeps = self.level.episode_steps, SUBSTEPS
        self.model = build_model(self.robot, self.level)
        self.rules = rules_of(self.level, self.model, self.robot.qpos, self.robot.senses)
        self.batch = empty_batch(num_envs, self.rules, self.model)
        self._poses = np.zeros((num_envs, 3)), np.zeros((num_envs, 3, 3))
        self._simulator = SimulatedPhysics(self.model, self.rules, self.batch, threads)
        self.physics: SimulatedPhysics | GlidingPhysics = self._simulator
        if robot == "Point":  # it obeys a closed form wherever it touches nothing
            self.physics = GlidingPhysics(self.level, self.rules, self.batch, self._poses, self._simulator)
        self.judge = JUDGES[self.level.aim]
        self._cost_rows = {name: self.judge.costs.index(name) for name in self.level.costs()}
        lidars = BINS * len(self.rules.lidars)
        self._width = self.robot.feels + lidars
        self.rings = tuple((first, first + BINS) for first in range(self.robot.feels, self._width, BINS))
        low = np.r_[np.full(self.robot.feels, -np.inf), np.zeros(lidars)]
        high = np.r_[np.full(self.robot.feels, np.inf), np.ones(lidars)]
        self.single_observation_space: spaces.Space = spaces.Box(low, high, dtype=np.float64)
        self.single_action_space: spaces.Space = spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)
        self._everyone = np.arange(num_envs)
        self._began = False
        self._seed(seed)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._seed(seed)
        obs = np.empty((self.num_envs, self._width))
        self._begin(self._everyone, obs)
        self._began = True
        return obs, {}

    def step(self, actions: np.ndarray) -> StepResult:
        if not self._began:
            raise UsageError("step: the batch has not begun; call reset or set_state first.")
        bounded = self._bounded(actions)
        sheet, obs = empty_step_buffers(self.num_envs, len(self.judge.costs)), np.empty((self.num_envs, self._width))
        count = self._pass(bounded, sheet, obs)
        reward, cost, terminated, truncated, goal_met, parts = _read(sheet)
        ended = terminated | truncated
        info = final_info(obs, ended)
        info["goal_met"] = goal_met
        for name, row in self._cost_rows.items():
            info[name] = parts[row]
        if count:
            info["final_obs"] = obs.copy()
            self._begin(np.flatnonzero(ended), obs)
        return obs, reward, cost, terminated, truncated, info

    def _pass(self, actions: np.ndarray, sheet: StepBuffers, obs: np.ndarray) -> int:
        """Move, judge and observe everybody; returns how many episodes ended."""
        if isinstance(self.physics, GlidingPhysics):
            left, ended = self.judge.fast_step(self.physics.world, actions, sheet, obs)
            if not left:
                return ended
            others = self.physics.others[:left]
            self._simulator.advance(others, actions[others])
        else:
            self.physics.advance(self._everyone, actions)
        ended = self.judge.judge(self.batch, self.rules, _read(sheet))
        self._see(self._everyone, obs)  # after the judgement: a goal just reached has moved on
        return ended

    def observe(self) -> np.ndarray:
        obs = np.empty((self.num_envs, self._width))
        self._see(self._everyone, obs)
        return obs

    def get_state(self, members: np.ndarray | None = None) -> State:
        rows = self._everyone if members is None else np.asarray(members)
        return {name: array[rows] for name, array in self.batch._asdict().items()}

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        rows = self._everyone if members is None else np.asarray(members)
        for name, array in self.batch._asdict().items():
            if name not in state or np.shape(state[name]) != (len(rows), *array.shape[1:]):
                found = np.shape(state[name]) if name in state else "missing"
                allowed = (len(rows), *array.shape[1:])
                raise UsageError(f"state[{name!r}]: {found} does not fit; it must have shape {allowed}.")
        for name, array in self.batch._asdict().items():
            array[rows] = state[name]
        self._began = True

    def layout(self, members: np.ndarray | None = None) -> Layout:
        """Where everything is: `agent` (n, 3) and every group (n, count, 3) as x, y, yaw; in Button tasks also
        `goal_button` (n,). What `set_layout` takes."""
        rows = self._everyone if members is None else np.asarray(members)
        self.observe()
        return read_layout(self.batch, self.rules, self.level, *self._poses, rows)

    def set_layout(self, layout: Layout, members: np.ndarray | None = None) -> np.ndarray:
        """Begin an episode with the named things in the given places and all at rest; returns all observations.

        Places are (x, y) or (x, y, yaw), one row per member and object, or anything that broadcasts to it;
        without a yaw the old one stays. What is not named stays where it is (gremlins: where their paths are). No
        distances are enforced and no random number is drawn.
        """
        if not self._began:
            raise UsageError("set_layout: the batch has not begun; call reset first.")
        rows = self._everyone if members is None else np.asarray(members)
        complete = complete_layout(self.level, self.layout(rows), layout)
        write_layout(self.batch, self.rules, self.level, complete, rows)
        obs = self.observe()
        self._settle(rows, obs)
        return obs

    def raw_physics(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, member]`, for `benchmarks/stepping.py`: changes nothing."""
        self._simulator.raw_steps(actions)

    def close(self) -> None:
        self.physics.close()

    def _seed(self, seed: int) -> None:
        if not 0 <= seed <= 2**32 - self.num_envs:
            raise UsageError(f"seed: {seed!r} is not allowed; it must lie between 0 and {2**32 - self.num_envs}.")
        for i in range(self.num_envs):
            self.batch.rng[i] = seeded(seed + i)

    def _bounded(self, actions: Any) -> np.ndarray:
        given = np.array(actions, dtype=np.float64, order="C")  # another layout would be compiled for anew
        if given.shape != (self.num_envs, 2):
            raise UsageError(f"actions: shape {given.shape} is not allowed; it must be {(self.num_envs, 2)}.")
        if not bound(given):
            raise UsageError("actions: NaN is not allowed; every entry must be a number.")
        return given

    def _begin(self, members: np.ndarray, obs: np.ndarray) -> None:
        """Start a new episode in a sampled layout."""
        failed = sample_layouts(self.batch, self.rules, members) or self.judge.begin(self.batch, self.rules, members)
        if failed:
            raise UsageError(f"env: {self.env_id} found no free layout; its objects must leave room for each other.")
        self._settle(members, obs)

    def _settle(self, members: np.ndarray, obs: np.ndarray) -> None:
        """Put robots and bodies where the layout says, at rest, and look around."""
        self.batch.steps[members] = 0
        place_bodies(self.batch, self.rules, members)
        self.robot.place(self.batch, members)
        self.physics.sense(members, np.zeros((len(members), 2)))
        self._see(members, obs)

    def _see(self, members: np.ndarray, obs: np.ndarray) -> None:
        self.robot.see(self.batch, self.rules, members, *self._poses, obs)
