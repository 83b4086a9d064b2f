"""Recorders of an episode for replay: navigation tasks from above, velocity tasks from the side.

A view records one environment of a batch, frame by frame, and returns the frames as plain data for the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import mujoco
import numpy as np

from flashbulb.envs import State
from flashbulb.envs.navigation.render import HALF_VIEW, Scene
from flashbulb.envs.navigation.tasks import (
    BOX_HALF,
    BUTTON_RADIUS,
    CIRCLE_RADIUS,
    GOAL_RADIUS,
    GREMLIN_TRAVEL,
    HAZARD_RADIUS,
)
from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.task_views import scene_of
from flashbulb.envs.velocity import VelocityTask
from flashbulb.report.encoding import floats, points, quantised

OBJECT_SIZES = {
    "box": BOX_HALF,
    "button": BUTTON_RADIUS,
    "circle": CIRCLE_RADIUS,
    "goal": GOAL_RADIUS,
    "path": GREMLIN_TRAVEL,
    "hazard": HAZARD_RADIUS,
}
MOTION_TOLERANCE = 1e-3  # metres; objects that move less are recorded once

LIMB_INTERVAL = 2  # steps between frames of the limbs, which are most of a recording's size
HEADROOM, SWIMMER_VIEW = 1.0, 4.0  # metres
LIMB_GEOMS = (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE)


class EpisodeView(Protocol):
    def record(self) -> None:
        """Record the current state as the next frame."""

    def repeat(self) -> None:
        """Repeat the last frame: the environment has reset itself in the step that ended the episode."""

    def frames(self) -> dict[str, Any]: ...


class ArenaView:
    """A navigation task from above: the robot and all objects."""

    def __init__(self, task: Any, env_index: int) -> None:
        self.task, self.env_index = task, env_index
        self.scenes: list[Scene] = []
        self.goal_changes: list[tuple[int, State]] = []  # frame and environment state whenever the goal is new

    def record(self) -> None:
        scene = scene_of(self.task, 0.0, self.env_index)
        if not self.scenes or _goal(scene) != _goal(self.scenes[-1]):
            self.goal_changes.append((len(self.scenes), self.task.get_state(np.array([self.env_index]))))
        self.scenes.append(scene)

    def repeat(self) -> None:
        self.scenes.append(self.scenes[-1])

    def frames(self) -> dict[str, Any]:
        first = self.scenes[0]
        agent = np.array([scene.agent for scene in self.scenes])
        agent[:, 2] = np.remainder(agent[:, 2] + math.pi, 2 * math.pi) - math.pi
        return {
            "kind": "arena",
            "robot": first.robot,
            "agent": quantised(agent),
            "half": round(float(max(HALF_VIEW, np.abs(agent[:, :2]).max() + 0.3)), 3),
            "goals": self._changes(_goal),
            "blind": self._changes(lambda scene: scene.blind),
            "hazards": points(first.hazards[:, :2]),
            "buttons": points(first.buttons[:, :2]),
            "paths": points(first.paths[:, :2]),
            "vases": self._boxes("vases"),
            "gremlins": self._boxes("gremlins"),
            "walls": [limit if math.isfinite(limit) else None for limit in first.boundary],
            "circle": first.has_circle,
            "maps": [],
        }

    def _changes(self, of: Callable[[Scene], Any]) -> list[list[Any]]:
        """[frame, value] for every frame with a new value."""
        values = [of(scene) for scene in self.scenes]
        return [[t, value] for t, value in enumerate(values) if t == 0 or value != values[t - 1]]

    def _boxes(self, name: str) -> dict[str, Any]:
        """Rows of x, y, yaw for every frame, or for the first frame only if nothing moves."""
        rows = np.array([getattr(scene, name) for scene in self.scenes]).reshape(len(self.scenes), -1, 3)
        moves = rows.size and np.ptp(rows[..., :2], axis=0).max() > MOTION_TOLERANCE
        return quantised(rows if moves else rows[:1])


def _goal(scene: Scene) -> list[float] | None:
    return None if scene.goal is None else points([scene.goal])[0]


class RunnerView:
    """A velocity task from the side: the robot's limbs, and its speed."""

    def __init__(self, task: VelocityTask, env_index: int) -> None:
        self.task, self.env_index = task, env_index
        model = task.physics.model
        self.data = mujoco.MjData(model)
        self.geoms = np.flatnonzero(np.isin(model.geom_type, LIMB_GEOMS))
        self.seconds = model.opt.timestep * task.robot.substeps
        # The swimmer moves in the horizontal plane and is shown from above.
        self.up = 1 if task.robot.xml == "swimmer.xml" else 2
        self.positions: list[np.ndarray] = []  # from which the task computes the velocity
        self.limbs: list[np.ndarray] = []

    def record(self) -> None:
        self.positions.append(self.task.position[self.env_index].copy())
        self.limbs.append(self._limb_ends())

    def repeat(self) -> None:
        self.positions.append(np.full(2, np.nan))  # the speed of the last step is unknown
        self.limbs.append(self.limbs[-1])

    def _limb_ends(self) -> np.ndarray:
        """Both ends of every limb (geoms, 2, 2): forward and upward coordinates."""
        model, data = self.task.physics.model, self.data
        mujoco.mj_setState(model, data, self.task.physics.state[self.env_index], FULL_PHYSICS)
        mujoco.mj_kinematics(model, data)
        half = np.where(model.geom_type[self.geoms] == LIMB_GEOMS[0], model.geom_size[self.geoms, 1], 0.0)
        axis = data.geom_xmat[self.geoms].reshape(-1, 3, 3)[:, :, 2] * half[:, None]
        middle = data.geom_xpos[self.geoms]
        return np.stack([middle - axis, middle + axis], axis=1)[:, :, [0, self.up]]

    def frames(self) -> dict[str, Any]:
        velocity = np.diff(np.array(self.positions), axis=0) / self.seconds
        speed = np.r_[np.nan, self.task.robot.speed(velocity)]
        limbs = np.array(self.limbs[::LIMB_INTERVAL])
        along = limbs[..., 0].mean(axis=(1, 2))
        limbs[..., 0] -= along[:, None, None]  # relative to the body, so that 16 bits suffice
        if self.up == 1:
            limbs[..., 1] -= limbs[..., 1].mean(axis=(1, 2))[:, None, None]
        return {
            "kind": "runner",
            "speed": floats(speed),
            "speed_limit": self.task.robot.speed_limit,
            "every": LIMB_INTERVAL,
            "along": quantised(along),
            "limbs": quantised(limbs),
            "radii": points([self.task.physics.model.geom_size[self.geoms, 0]])[0],
            "ground": self.up == 2,
            "tall": SWIMMER_VIEW if self.up == 1 else round(float(limbs[..., 1].max()) + HEADROOM, 2),
        }
