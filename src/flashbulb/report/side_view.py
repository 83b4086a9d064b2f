"""What a velocity task's episode shows: the runner's limbs from the side, and its speed against the limit."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.velocity import VelocityTask
from flashbulb.report.packing import floats, points, track

EVERY = 2  # steps between pictures of the limbs, which are most of a film's size
HEADROOM, SWIMMER_VIEW = 1.0, 4.0  # metres
ROUND = (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE)


class FromBeside:
    def __init__(self, task: VelocityTask, member: int) -> None:
        self.task, self.member = task, member
        model = task.physics.model
        self.data = mujoco.MjData(model)
        self.geoms = np.flatnonzero(np.isin(model.geom_type, ROUND))
        self.seconds = model.opt.timestep * task.robot.substeps
        # A swimmer lies flat, and is seen from above.
        self.up = 1 if task.robot.xml == "swimmer.xml" else 2
        self.positions: list[np.ndarray] = []  # by which the task measures velocity
        self.limbs: list[np.ndarray] = []

    def look(self) -> None:
        self.positions.append(self.task.robot.position(self.task.physics)[self.member])
        self.limbs.append(self._ends())

    def stay(self) -> None:
        """The last step's speed is unknown; its cost is not."""
        self.positions.append(np.full(2, np.nan))
        self.limbs.append(self.limbs[-1])

    def _ends(self) -> np.ndarray:
        """Both ends of every limb (geoms, 2, 2), along the track and up."""
        model, data = self.task.physics.model, self.data
        mujoco.mj_setState(model, data, self.task.physics.state[self.member], FULL_PHYSICS)
        mujoco.mj_kinematics(model, data)
        half = np.where(model.geom_type[self.geoms] == ROUND[0], model.geom_size[self.geoms, 1], 0.0)
        axis = data.geom_xmat[self.geoms].reshape(-1, 3, 3)[:, :, 2] * half[:, None]
        middle = data.geom_xpos[self.geoms]
        return np.stack([middle - axis, middle + axis], axis=1)[:, :, [0, self.up]]

    def film(self) -> dict[str, Any]:
        velocity = np.diff(np.array(self.positions), axis=0) / self.seconds
        speed = np.r_[np.nan, self.task.robot.speed(velocity)]
        limbs = np.array(self.limbs[::EVERY])
        along = limbs[..., 0].mean(axis=(1, 2))
        limbs[..., 0] -= along[:, None, None]  # so that few bits suffice however far it runs
        if self.up == 1:
            limbs[..., 1] -= limbs[..., 1].mean(axis=(1, 2))[:, None, None]
        return {
            "kind": "track",
            "speed": floats(speed),
            "speed_limit": self.task.robot.speed_limit,
            "every": EVERY,
            "along": track(along),
            "limbs": track(limbs),
            "radii": points([self.task.physics.model.geom_size[self.geoms, 0]])[0],
            "ground": self.up == 2,
            "tall": SWIMMER_VIEW if self.up == 1 else round(float(limbs[..., 1].max()) + HEADROOM, 2),
        }
