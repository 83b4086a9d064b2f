"""What an episode in an arena shows: the robot's way among whatever lies, stands and moves there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flashbulb.analysis.intrinsic_map import scene_of
from flashbulb.envs import State
from flashbulb.envs.navigation.render import HALF_VIEW
from flashbulb.envs.navigation.scene import Scene
from flashbulb.envs.navigation.tasks import (
    BOX_HALF,
    BUTTON_RADIUS,
    CIRCLE_RADIUS,
    GOAL_RADIUS,
    GREMLIN_TRAVEL,
    HAZARD_RADIUS,
)
from flashbulb.report.packing import points, track

SIZES = {
    "box": BOX_HALF,
    "button": BUTTON_RADIUS,
    "circle": CIRCLE_RADIUS,
    "goal": GOAL_RADIUS,
    "path": GREMLIN_TRAVEL,
    "hazard": HAZARD_RADIUS,
}
STILL = 1e-3  # metres within which a thing has not moved


class FromAbove:
    def __init__(self, task: Any, member: int) -> None:
        self.task, self.member = task, member
        self.scenes: list[Scene] = []
        self.moments: list[tuple[int, State]] = []  # when the goal was new: the frame, and the world as it was

    def look(self) -> None:
        scene = scene_of(self.task, 0.0, self.member)
        if not self.scenes or _goal(scene) != _goal(self.scenes[-1]):
            self.moments.append((len(self.scenes), self.task.get_state(np.array([self.member]))))
        self.scenes.append(scene)

    def stay(self) -> None:
        self.scenes.append(self.scenes[-1])

    def film(self) -> dict[str, Any]:
        first = self.scenes[0]
        agent = np.array([scene.agent for scene in self.scenes])
        agent[:, 2] = np.remainder(agent[:, 2] + math.pi, 2 * math.pi) - math.pi
        return {
            "kind": "arena",
            "robot": first.robot,
            "agent": track(agent),
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
        """[frame, value] wherever the value is a new one."""
        values = [of(scene) for scene in self.scenes]
        return [[t, value] for t, value in enumerate(values) if t == 0 or value != values[t - 1]]

    def _boxes(self, name: str) -> dict[str, Any]:
        """Rows of x, y, yaw for every frame, or for one where nothing moved."""
        rows = np.array([getattr(scene, name) for scene in self.scenes]).reshape(len(self.scenes), -1, 3)
        moved = rows.size and np.ptp(rows[..., :2], axis=0).max() > STILL
        return track(rows if moved else rows[:1])


def _goal(scene: Scene) -> list[float] | None:
    return None if scene.goal is None else points([scene.goal])[0]
