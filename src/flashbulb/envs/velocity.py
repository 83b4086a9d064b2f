"""Safety-Gymnasium's velocity tasks, batched: run as fast as pays, at cost 1 for every step above a limit.

`docs/parity.md` says how closely each follows the original. One departure is deliberate: actions are clipped to
their bounds first, so the control cost is that of the clipped action, where the original charges for the raw
one (its physics clips as well).
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from flashbulb.envs import seeding as generators
from flashbulb.envs.base import Info, State, StepResult, final_info
from flashbulb.envs.velocity_robots import ROBOTS, make_physics
from flashbulb.errors import UsageError


def make(env_id: str, num_envs: int, seed: int, threads: int | None) -> VelocityTask:
    return VelocityTask(env_id, num_envs, seed, threads)


class VelocityTask:
    """`num_envs` copies of one robot on a straight track without end."""

    max_episode_steps = 1000

    def __init__(self, env_id: str, num_envs: int, seed: int, threads: int | None) -> None:
        self.env_id, self.num_envs = env_id, num_envs
        self.robot = ROBOTS[env_id.removeprefix("Safety").removesuffix("Velocity-v1")]
        self.physics = make_physics(self.robot, num_envs, threads)
        model = self.physics.model
        self._dt = model.opt.timestep * self.robot.substeps
        self._low, self._high = model.actuator_ctrlrange.T.copy()
        self._position = np.zeros((num_envs, 2))  # before the step, for velocities by finite differences
        self._steps = np.zeros(num_envs, np.int64)
        self._rngs: list[np.random.Generator] = []
        self.reset(seed)  # so that the batch can be observed and snapshot from the start,
        self._rngs = generators.seeded(seed, num_envs)  # and the first reset() is nevertheless that of `seed`
        size = self._obs.shape[1]
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.single_action_space = spaces.Box(self._low.astype(np.float32), self._high.astype(np.float32))

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._rngs = generators.seeded(seed, self.num_envs)
        self._restart(np.arange(self.num_envs))
        self._obs = self._observation()
        return self._obs.copy(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        controls = self._controls(actions)
        self.physics.step(controls)
        velocity, position = self._velocity()
        reward, cost = self._reward(velocity, controls), self._cost(velocity)
        self._position = position
        self._steps += 1
        terminated = ~self.robot.healthy(self.physics.qpos, self.physics.qvel)
        truncated = self._steps >= self.max_episode_steps
        ended = terminated | truncated
        final = self._observation()
        self._obs = final
        if ended.any():
            self._restart(np.flatnonzero(ended))
            self._obs = self._observation()
        return self._obs.copy(), reward, cost, terminated, truncated, final_info(final.copy(), ended)

    def _controls(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions, np.float64)
        wanted = (self.num_envs, len(self._low))
        if actions.shape != wanted:
            raise UsageError(f"actions: shape {actions.shape} is not allowed; it must be {wanted}.")
        if np.isnan(actions).any():  # MuJoCo would take it for zero and go on
            raise UsageError("actions: NaN is not allowed; every entry must be a number.")
        return np.clip(actions, self._low, self._high)

    def _velocity(self) -> tuple[np.ndarray, np.ndarray]:
        position = self.robot.position(self.physics)
        return (position - self._position) / self._dt, position

    def _reward(self, velocity: np.ndarray, controls: np.ndarray) -> np.ndarray:
        robot = self.robot
        effort = np.sum(controls * controls, axis=1)
        return robot.forward_weight * velocity[:, 0] + robot.healthy_reward - robot.control_weight * effort

    def _cost(self, velocity: np.ndarray) -> np.ndarray:
        return (self.robot.speed(velocity) > self.robot.speed_limit).astype(np.float64)

    def _observation(self) -> np.ndarray:
        robot, physics = self.robot, self.physics
        seen = np.clip(physics.qvel, -robot.velocity_clip, robot.velocity_clip)
        parts = [physics.qpos[:, robot.hidden :], seen]
        parts += [physics.derived[field].reshape(self.num_envs, -1) for field in robot.observed_fields]
        return np.concatenate(parts, axis=1)

    def _restart(self, members: np.ndarray) -> None:
        """Draw from each member's generator what the original draws, in its order."""
        robot, model = self.robot, self.physics.model
        qpos, qvel = np.empty((len(members), model.nq)), np.empty((len(members), model.nv))
        for row, member in enumerate(members):
            rng = self._rngs[member]
            qpos[row] = model.qpos0 + rng.uniform(-robot.reset_noise, robot.reset_noise, model.nq)
            qvel[row] = robot.velocity_noise(rng, robot.reset_noise, model.nv)
        if robot.free_root:
            qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
        self.physics.restart(members, qpos, qvel)
        self._position[members] = robot.position(self.physics)[members]
        self._steps[members] = 0

    def get_state(self, members: np.ndarray | None = None) -> State:
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        state = {name: array[rows] for name, array in self._arrays().items()}
        state["rng"] = generators.pack([self._rngs[i] for i in rows])
        return state

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        rows = np.arange(self.num_envs)[slice(None) if members is None else members]
        if len(state["rng"]) != len(rows):
            raise UsageError(f"state: {len(state['rng'])} rows are not allowed; it must have {len(rows)}.")
        for name, array in self._arrays().items():
            array[rows] = state[name]
        for i, packed in zip(rows, state["rng"], strict=True):
            self._rngs[i] = generators.unpack(packed)
        self._obs = self._observation()

    def _arrays(self) -> State:
        """All that a member's future depends on, except for its generator."""
        arrays = {"physics": self.physics.state, "position": self._position, "steps": self._steps}
        if self.physics.derived:
            arrays |= {"warmstart": self.physics.warmstart} | self.physics.derived
        return arrays

    def observe(self) -> np.ndarray:
        return self._obs.copy()

    def raw_physics(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, member]`, for `benchmarks/stepping.py`: changes nothing."""
        self.physics.raw_steps(np.clip(actions, self._low, self._high))

    def close(self) -> None:
        self.physics.close()
