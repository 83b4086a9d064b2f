"""The velocity tasks' robots as a batch: a row of `state` (time, qpos, qvel) per member, and what else decides its way.

Two robots need more than their state. After `mj_step` with the Runge-Kutta integrator, the quantities that MuJoCo
derives from the state (body positions, inertias, forces) are those of the integrator's fourth stage in the last
substep, not of the state it returns. The original Ant and Humanoid tasks read them as they stand, and so must we;
nothing can reconstruct them later. And Humanoid's solver (PGS, 50 iterations) does not converge, so that where it
starts is part of the state as well. Elsewhere it starts cold at every step: with a tolerance of 1e-12 that moves the
outcome by less than 1e-12 and costs no measurable time.
"""

from __future__ import annotations

from functools import cached_property

import mujoco
import numpy as np

from flashbulb.envs.raw_benchmark import RawBenchmark
from flashbulb.envs.simulator import CONTROL, FULL_PHYSICS, After, Simulator, thread_count


class Physics:
    """`num_envs` states of one model; a step is `substeps` of `mj_step` under constant controls. Of the MjData
    `fields` it keeps `derived[field][member]`, as the last substep left them."""

    def __init__(
        self, model: mujoco.MjModel, num_envs: int, substeps: int, threads: int | None, fields: tuple[str, ...] = ()
    ) -> None:
        self.model, self.num_envs, self.substeps = model, num_envs, substeps
        self.threads = thread_count(threads, num_envs)
        self.state = np.zeros((num_envs, mujoco.mj_stateSize(model, FULL_PHYSICS)))
        self.qpos = self.state[:, 1 : 1 + model.nq]
        self.qvel = self.state[:, 1 + model.nq : 1 + model.nq + model.nv]
        self._data = mujoco.MjData(model)
        shapes = {field: getattr(self._data, field).shape for field in fields}
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        readings = np.zeros((num_envs, ends[-1] if fields else 0))
        parts = np.split(readings, ends[:-1], axis=1) if fields else []
        self.derived = {
            field: part.reshape(num_envs, *shape) for (field, shape), part in zip(shapes.items(), parts, strict=True)
        }
        after = After.FORCES if "cfrc_ext" in fields else After.NOTHING
        self._simulator = Simulator(
            model, self.state, readings, fields, substeps, CONTROL, 1, self.threads, after, carries=bool(fields)
        )
        self._simulator.members[:] = np.arange(num_envs)
        self.warmstart = self._simulator.warmstarts

    def restart(self, members: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Put the members into these positions and velocities, at time zero."""
        self.state[members] = 0.0
        self.qpos[members] = qpos
        self.qvel[members] = qvel
        for member in members if self.derived else ():
            data = self._data
            mujoco.mj_resetData(self.model, data)
            data.qpos, data.qvel = self.qpos[member], self.qvel[member]
            mujoco.mj_forward(self.model, data)
            self.warmstart[member] = data.qacc  # what mj_forward left there in the original's MuJoCo 2.3.3
            for field, rows in self.derived.items():
                rows[member] = getattr(data, field)

    def step(self, controls: np.ndarray) -> None:
        """Advance every member under its row of `controls`."""
        self._simulator.controls[:, 0] = controls
        self._simulator.step(self.num_envs)

    def raw_steps(self, controls: np.ndarray) -> None:
        """MuJoCo alone under `controls[step, member]`, for the benchmarks: changes nothing."""
        held = np.ascontiguousarray(np.repeat(controls.swapaxes(0, 1), self.substeps, axis=1))
        self._yardstick.run(self.state, held, CONTROL)

    @cached_property
    def _yardstick(self) -> RawBenchmark:
        return RawBenchmark(self.model, self.threads)

    def close(self) -> None:
        self._simulator.close()
