"""Safety-Gymnasium's velocity tasks, batched: the reward is for running forward, a step above the speed limit costs 1.

`docs/parity.md` says how closely each follows the original. One departure is deliberate: actions are clipped to their
bounds first, so the control cost is that of the clipped action, where the original charges for the raw one (its
physics clips as well).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from gymnasium import spaces

from flashbulb.cores import thread_count
from flashbulb.envs.base import Info, State, StepResult, checked_actions, env_rows, final_info
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.envs.rng import pack_pcg64, pcg64_generators, unpack_pcg64
from flashbulb.envs.simulator import FULL_PHYSICS, After, RolloutSimulator, StepPlan, make_simulator
from flashbulb.envs.velocity.robot_dynamics import dynamics_of
from flashbulb.envs.velocity.velocity_robots import ROBOTS, VelocityRobot, load_model
from flashbulb.envs.velocity.velocity_scoring import Robots, clip_controls, observe, place, rules_of, score
from flashbulb.errors import UsageError

PARAMETERS = ("speed_limit", "episode_steps")  # what `env_kwargs` may set


def _check_parameters(speed_limit: Any, episode_steps: Any) -> None:
    number = isinstance(speed_limit, int | float) and not isinstance(speed_limit, bool) and 0 <= speed_limit < np.inf
    if speed_limit is not None and not number:
        raise UsageError(f"env_kwargs.speed_limit: {speed_limit!r} is not allowed; it must be a number of at least 0.")
    if isinstance(episode_steps, bool) or not isinstance(episode_steps, int) or not 1 <= episode_steps <= 100_000:
        allowed = "a whole number from 1 to 100000"
        raise UsageError(f"env_kwargs.episode_steps: {episode_steps!r} is not allowed; it must be {allowed}.")


class VelocityTask:
    """`num_envs` copies of one robot on an endless straight track.

    A step above `speed_limit` costs 1 (default: the original's limit), an episode has `episode_steps`.
    """

    max_episode_steps = 1000

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        seed: int,
        threads: int | None,
        physics: PhysicsBackend | None = None,
        speed_limit: float | None = None,
        episode_steps: int = max_episode_steps,
    ) -> None:
        _check_parameters(speed_limit, episode_steps)
        self.env_id, self.num_envs, self.max_episode_steps = env_id, num_envs, episode_steps
        self.robot = ROBOTS[env_id.removeprefix("Safety").removesuffix("Velocity-v1")]
        self.speed_limit = self.robot.speed_limit if speed_limit is None else float(speed_limit)
        self.physics = VelocityPhysics(self.robot, num_envs, threads, physics)
        rules = rules_of(self.robot, self.physics.model, self.speed_limit, episode_steps)
        self._rules, self._bounds = tuple(rules), rules.controls
        self.position = np.zeros((num_envs, 2))  # of which the velocity is the difference
        self._steps = np.zeros(num_envs, np.int64)
        self._robots = tuple(Robots(self.physics.state, self.physics.readings, self.position, self._steps))
        self._all = np.arange(num_envs)
        self._width = self.physics.state.shape[1] - 1 - rules.hidden
        self._width += self.physics.readings.shape[1] - rules.observed if self.robot.observed_fields else 0
        self._rngs: list[np.random.Generator] = []
        self.reset(seed)  # so that the batch can be observed and saved from the start
        self._rngs = pcg64_generators(seed, num_envs)  # so that the first reset() is still that of `seed`
        low, high = rules.controls.astype(np.float32)
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (self._width,), np.float64)
        self.single_action_space = spaces.Box(low, high)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._rngs = pcg64_generators(seed, self.num_envs)
        self._restart(self._all)
        return self.observe(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        controls = checked_actions(self.single_action_space, actions, self.num_envs)
        clip_controls(controls, self._bounds)
        self.physics.step(controls)
        numbers, flags = np.empty((2, self.num_envs)), np.empty((3, self.num_envs), np.bool_)
        obs = np.empty((self.num_envs, self._width))
        count = score(self._robots, self._rules, controls, numbers, flags, obs)
        reward, cost = numbers
        terminated, truncated, ended = flags
        info = final_info(obs, ended)
        if count:
            self._restart(np.flatnonzero(ended))
            obs = self.observe()
        return obs, reward, cost, terminated, truncated, info

    def _restart(self, indices: np.ndarray) -> None:
        """Start episodes: each generator draws the same numbers as the original's, in the same order."""
        robot, model = self.robot, self.physics.model
        qpos, qvel = np.empty((len(indices), model.nq)), np.empty((len(indices), model.nv))
        for row, i in enumerate(indices):
            rng = self._rngs[i]
            qpos[row] = model.qpos0 + rng.uniform(-robot.reset_noise, robot.reset_noise, model.nq)
            qvel[row] = robot.velocity_noise(rng, robot.reset_noise, model.nv)
        if robot.free_root:
            qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
        self.physics.restart(indices, qpos, qvel)
        place(self._robots, self._rules, indices)
        self._steps[indices] = 0

    def get_state(self, indices: np.ndarray | None = None) -> State:
        rows = env_rows(indices, self.num_envs)
        state = {name: array[rows] for name, array in self._arrays().items()}
        state["rng"] = pack_pcg64([self._rngs[i] for i in rows])
        return state

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        rows = env_rows(indices, self.num_envs)
        if len(state["rng"]) != len(rows):
            raise UsageError(f"state: {len(state['rng'])} rows are not allowed; it must have {len(rows)}.")
        for name, array in self._arrays().items():
            array[rows] = state[name]
        for i, packed in zip(rows, state["rng"], strict=True):
            self._rngs[i] = unpack_pcg64(packed)

    def _arrays(self) -> State:
        """Everything that the future depends on, except the generators."""
        arrays = {"physics": self.physics.state, "position": self.position, "steps": self._steps}
        if self.physics.derived:
            arrays |= {"warmstart": self.physics.warmstart} | self.physics.derived
        return arrays

    def observe(self) -> np.ndarray:
        obs = np.empty((self.num_envs, self._width))
        observe(self._robots, self._rules, obs)
        return obs

    def raw_physics(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, env]`, for `benchmarks/stepping.py`: changes nothing."""
        self.physics.raw_steps(np.clip(actions, *self._bounds))

    def close(self) -> None:
        self.physics.close()


class VelocityPhysics:
    """The robots of a batch: a row of `state` (time, qpos, qvel) each, and what else their future depends on.

    A step is `robot.substeps` of `mj_step` under constant controls. Two robots need more than their state. After
    `mj_step` with the Runge-Kutta integrator, the quantities that MuJoCo derives from the state (body positions,
    inertias, forces) belong to the integrator's fourth stage in the last substep and not to the returned state. The
    original Ant and Humanoid tasks read them as they are, so `derived[field]` keeps them; they cannot be recomputed
    later. And Humanoid's solver (PGS, 50 iterations) does not converge, so its start values are part of the state as
    well. For the other robots it starts from zero in every step: with a tolerance of 1e-12 this changes the result by
    less than 1e-12 and costs no measurable time.
    """

    def __init__(
        self, robot: VelocityRobot, num_envs: int, threads: int | None, physics: PhysicsBackend | None
    ) -> None:
        self.model, self.num_envs, self.substeps = load_model(robot), num_envs, robot.substeps
        self.threads = thread_count(threads, num_envs)
        fields = (robot.position_field, *robot.observed_fields) if robot.position_field else ()
        model = self.model
        self.state = np.zeros((num_envs, mujoco.mj_stateSize(model, FULL_PHYSICS)))
        self.qpos = self.state[:, 1 : 1 + model.nq]
        self.qvel = self.state[:, 1 + model.nq : 1 + model.nq + model.nv]
        self._data = mujoco.MjData(model)
        shapes = {field: getattr(self._data, field).shape for field in fields}
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        self.readings = np.zeros((num_envs, ends[-1] if fields else 0))  # `derived` one after the other
        parts = np.split(self.readings, ends[:-1], axis=1) if fields else []
        self.derived = {
            field: part.reshape(num_envs, *shape) for (field, shape), part in zip(shapes.items(), parts, strict=True)
        }
        after = After.FORCES if "cfrc_ext" in fields else After.NOTHING
        self._plan = StepPlan(robot.substeps, after=after, carry_warmstart=bool(fields))
        self._simulator = make_simulator(
            model, self.state, self.readings, fields, self._plan, self.threads, physics, dynamics_of(robot, model)
        )
        self._simulator.indices[:] = np.arange(num_envs)
        self.warmstart = self._simulator.warmstarts

    def restart(self, indices: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Set positions and velocities of these robots, at time zero."""
        self.state[indices] = 0.0
        self.qpos[indices] = qpos
        self.qvel[indices] = qvel
        for i in indices if self.derived else ():
            data = self._data
            mujoco.mj_resetData(self.model, data)
            data.qpos, data.qvel = self.qpos[i], self.qvel[i]
            mujoco.mj_forward(self.model, data)
            self.warmstart[i] = data.qacc  # as mj_forward left it in the original's MuJoCo 2.3.3
            for field, rows in self.derived.items():
                rows[i] = getattr(data, field)

    def step(self, controls: np.ndarray) -> None:
        """Advance every robot under its row of `controls`."""
        self._simulator.controls[:, 0] = controls
        self._simulator.step(self.num_envs)

    def raw_steps(self, controls: np.ndarray) -> None:
        """MuJoCo alone under `controls[step, env]`, for the benchmarks: changes nothing."""
        per_substep = np.ascontiguousarray(np.repeat(controls.swapaxes(0, 1), self.substeps, axis=1))
        self._raw.raw_steps(per_substep)

    @cached_property
    def _raw(self) -> RolloutSimulator:
        nothing = np.zeros((self.num_envs, 0))
        return RolloutSimulator(self.model, self.state, nothing, (), StepPlan(self.substeps), self.threads)

    def close(self) -> None:
        self._simulator.close()
