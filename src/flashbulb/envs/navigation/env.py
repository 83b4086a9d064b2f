"""A batch of navigation tasks. A step is physics, then scoring, then observation, each compiled over the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import Info, State, StepResult, checked_actions, env_rows, final_info
from flashbulb.envs.lidar import BINS
from flashbulb.envs.navigation.car_dynamics import CarPhysics
from flashbulb.envs.navigation.layout import (
    Layout,
    complete_layout,
    place_bodies,
    read_layout,
    sample_layouts,
    write_layout,
)
from flashbulb.envs.navigation.model import build_model
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, MujocoPhysics, clip_actions
from flashbulb.envs.navigation.point_dynamics import PointPhysics
from flashbulb.envs.navigation.robots import ROBOTS
from flashbulb.envs.navigation.scoring import SCORING, StepBuffers, empty_step_buffers, scores_of
from flashbulb.envs.navigation.task_state import empty_state, task_rules
from flashbulb.envs.navigation.tasks import parse, with_parameters
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.envs.rng import mt_seeded
from flashbulb.errors import UsageError


class Navigation:
    """`num_envs` environments of one navigation task; see `flashbulb.envs.base.CostVectorEnv`."""

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        seed: int,
        threads: int,
        physics: PhysicsBackend | None = None,
        **parameters: Any,
    ) -> None:
        robot, level = parse(env_id)
        self.level = with_parameters(level, parameters)
        self.robot = ROBOTS[robot]
        self.env_id, self.num_envs, self.threads = env_id, num_envs, threads
        self.max_episode_steps, self.substeps = self.level.episode_steps, SUBSTEPS
        self.model = build_model(robot, self.level)
        self.rules = task_rules(self.level, self.model, self.robot.qpos, self.robot.sensors)
        self.state = empty_state(num_envs, self.rules, self.model)
        self._poses = np.zeros((num_envs, 3)), np.zeros((num_envs, 3, 3))
        self._simulator = MujocoPhysics(self.model, self.rules, self.state, threads, physics)
        self.physics: PointPhysics | CarPhysics  # with MuJoCo for steps in which the robot may touch an object
        if robot == "Point":
            self.physics = PointPhysics(self.level, self.rules, self.state, self._poses, self._simulator)
        else:
            self.physics = CarPhysics(self.level, self.rules, self.state, self._simulator)
        self.scoring = SCORING[self.level.aim]
        self._cost_rows = {name: self.scoring.costs.index(name) for name in self.level.costs()}
        self.cost_names = tuple(self.level.limited_costs())
        self._limited_rows = {
            name: [self._cost_rows[part] for part in parts] for name, parts in self.level.limited_costs().items()
        }
        lidars = BINS * len(self.rules.lidars)
        self._width = self.robot.proprioception + lidars
        self.lidar_groups = tuple(
            (first, first + BINS) for first in range(self.robot.proprioception, self._width, BINS)
        )
        low = np.r_[np.full(self.robot.proprioception, -np.inf), np.zeros(lidars)]
        high = np.r_[np.full(self.robot.proprioception, np.inf), np.ones(lidars)]
        self.single_observation_space: spaces.Space = spaces.Box(low, high, dtype=np.float64)
        self.single_action_space: spaces.Space = spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)
        self._all = np.arange(num_envs)
        self._began = False
        self._seed(seed)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._seed(seed)
        obs = np.empty((self.num_envs, self._width))
        self._begin(self._all, obs)
        self._began = True
        return obs, {}

    def step(self, actions: np.ndarray) -> StepResult:
        if not self._began:
            raise UsageError("step: the batch has not begun; call reset or set_state first.")
        actions = checked_actions(self.single_action_space, actions, self.num_envs)
        clip_actions(actions)
        buffers = empty_step_buffers(self.num_envs, len(self.scoring.costs))
        obs = np.empty((self.num_envs, self._width))
        count = self._advance(actions, buffers, obs)
        reward, cost, terminated, truncated, goal_met, cost_parts = scores_of(buffers)
        ended = terminated | truncated
        info = final_info(obs, ended)
        info["goal_met"] = goal_met
        for name, row in self._cost_rows.items():
            info[name] = cost_parts[row]
        if self._limited_rows:
            info["costs"] = {
                name: cost_parts[rows[0]] if len(rows) == 1 else cost_parts[rows].max(axis=0)
                for name, rows in self._limited_rows.items()
            }
        if count:
            info["final_obs"] = obs.copy()
            self._begin(np.flatnonzero(ended), obs)
        return obs, reward, cost, terminated, truncated, info

    def _advance(self, actions: np.ndarray, buffers: StepBuffers, obs: np.ndarray) -> int:
        """Move, score and observe all environments; returns how many episodes ended."""
        if isinstance(self.physics, PointPhysics):
            count, ended = self.scoring.fast_step(self.physics.context, actions, buffers, obs)
            if not count:
                return ended
            to_simulate = self.physics.to_simulate[:count]
            self._simulator.advance(to_simulate, actions[to_simulate])
        else:
            self.physics.advance(self._all, actions)
        ended = self.scoring.score(self.state, self.rules, scores_of(buffers))
        self._observe(self._all, obs)  # after the scoring, which moves a goal that was reached
        return ended

    def observe(self) -> np.ndarray:
        obs = np.empty((self.num_envs, self._width))
        self._observe(self._all, obs)
        return obs

    def get_state(self, indices: np.ndarray | None = None) -> State:
        rows = env_rows(indices, self.num_envs)
        return {name: array[rows] for name, array in self.state._asdict().items()}

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        rows = env_rows(indices, self.num_envs)
        for name, array in self.state._asdict().items():
            if name not in state or np.shape(state[name]) != (len(rows), *array.shape[1:]):
                found = np.shape(state[name]) if name in state else "missing"
                allowed = (len(rows), *array.shape[1:])
                raise UsageError(f"state[{name!r}]: {found} does not fit; it must have shape {allowed}.")
        for name, array in self.state._asdict().items():
            array[rows] = state[name]
        self._began = True

    def layout(self, indices: np.ndarray | None = None) -> Layout:
        """All places: `agent` (n, 3) and every group (n, count, 3) as x, y, yaw; in Button tasks also
        `goal_button` (n,). `set_layout` accepts the result."""
        rows = env_rows(indices, self.num_envs)
        self.observe()
        return read_layout(self.state, self.rules, self.level, *self._poses, rows)

    def set_layout(self, layout: Layout, indices: np.ndarray | None = None) -> np.ndarray:
        """Start an episode with the named objects in the given places, all at rest; returns all observations.

        Places are (x, y) or (x, y, yaw), one row per environment and object, or anything that broadcasts to it; without
        a yaw the old one stays. Objects that are not named keep their places (gremlins: the centres of their paths).
        No distances are enforced and no random number is drawn.
        """
        if not self._began:
            raise UsageError("set_layout: the batch has not begun; call reset first.")
        rows = env_rows(indices, self.num_envs)
        complete = complete_layout(self.level, self.layout(rows), layout)
        write_layout(self.state, self.rules, self.level, complete, rows)
        obs = self.observe()
        self._place(rows, obs)
        return obs

    def raw_physics(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, env]`, for `benchmarks/stepping.py`: changes nothing."""
        self._simulator.raw_steps(actions)

    def close(self) -> None:
        self.physics.close()

    def _seed(self, seed: int) -> None:
        if not 0 <= seed <= 2**32 - self.num_envs:
            raise UsageError(f"seed: {seed!r} is not allowed; it must lie between 0 and {2**32 - self.num_envs}.")
        for i in range(self.num_envs):
            self.state.rng[i] = mt_seeded(seed + i)

    def _begin(self, indices: np.ndarray, obs: np.ndarray) -> None:
        """Start new episodes in sampled layouts."""
        failed = sample_layouts(self.state, self.rules, indices) or self.scoring.begin(self.state, self.rules, indices)
        if failed:
            raise UsageError(f"env: {self.env_id} found no free layout; its objects must leave room for each other.")
        self._place(indices, obs)

    def _place(self, indices: np.ndarray, obs: np.ndarray) -> None:
        """Put robots and bodies into the places of the layout, at rest, and observe."""
        self.state.steps[indices] = 0
        place_bodies(self.state, self.rules, indices)
        self.robot.place(self.state, indices)
        self.physics.sense(indices, np.zeros((len(indices), 2)))
        self._observe(indices, obs)

    def _observe(self, indices: np.ndarray, obs: np.ndarray) -> None:
        self.robot.observe(self.state, self.rules, indices, *self._poses, obs)
