"""A batch of MuJoCo states of which a task must know more than `mujoco.rollout` returns.

After `mj_step` with the Runge-Kutta integrator, the quantities that MuJoCo derives from the state (body
positions, inertias, forces) are those of the integrator's fourth stage in the last substep, not of the state it
returns. The original Ant and Humanoid tasks read them as they stand, and so must we, from the thread's own
`MjData` right after the step; nothing can reconstruct them later.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np

from flashbulb.cmdp.physics import FULL_PHYSICS, Physics


class MemberPhysics(Physics):
    """Steps members one by one in a thread pool (`mj_step` lets go of Python's lock) and keeps, beside their
    states, the `MjData` fields named in `fields`: `derived[field][member]`."""

    def __init__(
        self, model: mujoco.MjModel, num_envs: int, substeps: int, threads: int | None, fields: tuple[str, ...]
    ) -> None:
        super().__init__(model, num_envs, substeps, threads)
        data = self._scratch[0]
        self.derived = {field: np.zeros((num_envs, *getattr(data, field).shape)) for field in fields}
        # Humanoid's solver (PGS, 50 iterations) does not converge, so where it starts is part of the state.
        self.warmstart = np.zeros((num_envs, model.nv))
        self._workers = ThreadPoolExecutor(self.threads)

    def restart(self, members: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        super().restart(members, qpos, qvel)
        data = self._scratch[0]
        for member in members:
            mujoco.mj_resetData(self.model, data)
            data.qpos, data.qvel = self.qpos[member], self.qvel[member]
            mujoco.mj_forward(self.model, data)
            self.warmstart[member] = data.qacc  # what mj_forward left there in the original's MuJoCo 2.3.3
            self._read(data, member)

    def step(self, controls: np.ndarray) -> None:
        # Whoever is free takes the next member; who does it makes no difference to the outcome.
        waiting = deque(range(self.num_envs))
        others = [self._workers.submit(self._advance, data, waiting, controls) for data in self._scratch[1:]]
        self._advance(self._scratch[0], waiting, controls)
        for other in others:
            other.result()

    def _advance(self, data: mujoco.MjData, waiting: deque[int], controls: np.ndarray) -> None:
        model = self.model
        while True:
            try:
                member = waiting.popleft()
            except IndexError:
                return
            mujoco.mj_setState(model, data, self.state[member], FULL_PHYSICS)
            data.qacc_warmstart = self.warmstart[member]
            data.ctrl = controls[member]
            mujoco.mj_step(model, data, self.substeps)
            if "cfrc_ext" in self.derived:
                mujoco.mj_rnePostConstraint(model, data)
            mujoco.mj_getState(model, data, self.state[member], FULL_PHYSICS)
            self.warmstart[member] = data.qacc_warmstart
            self._read(data, member)

    def _read(self, data: mujoco.MjData, member: int) -> None:
        for field, rows in self.derived.items():
            rows[member] = getattr(data, field)

    def close(self) -> None:
        self._workers.shutdown()
        super().close()
