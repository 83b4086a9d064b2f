"""A picture's worth of one member: plain numbers taken from a batch, to be drawn now or later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashbulb.envs.navigation.env import Navigation
from flashbulb.envs.navigation.layout_io import read_yaw
from flashbulb.envs.navigation.tasks import Aim, Point

_NOTHING = np.zeros((0, 3))


@dataclass(frozen=True)
class Scene:
    """Where everything is at one moment; places are rows of x, y, yaw."""

    title: str
    robot: str
    agent: np.ndarray  # (3,)
    goal: np.ndarray | None  # (2,)
    hazards: np.ndarray
    vases: np.ndarray
    buttons: np.ndarray
    gremlins: np.ndarray
    paths: np.ndarray  # centres of the gremlins' paths
    boundary: Point
    has_circle: bool
    blind: bool  # the buttons do not react
    cost: float = 0.0  # of the step that led here


def take_scene(env: Navigation, member: int = 0, cost: float = 0.0) -> Scene:
    """Copy what a picture of the member needs. `cost` is what the last step cost it."""
    layout = {name: rows[0] for name, rows in env.layout(np.array([member])).items()}
    rules, row = env.rules, env.batch.physics[member]
    columns = [c for k, c, _ in rules.free if rules.gremlins[0] <= k < rules.gremlins[1]]
    bodies = np.array([row[c : c + 7] for c in columns]).reshape(-1, 7)
    goal = env.batch.objects[member, rules.goal, :2].copy() if rules.goal >= 0 else None
    return Scene(
        title=env.env_id,
        robot=env.robot_name,
        agent=layout["agent"],
        goal=goal,
        hazards=layout.get("hazards", _NOTHING),
        vases=layout.get("vases", _NOTHING),
        buttons=layout.get("buttons", _NOTHING),
        gremlins=np.c_[bodies[:, :2], read_yaw(bodies[:, 3:])],
        paths=layout.get("gremlins", _NOTHING),
        boundary=env.level.boundary,
        has_circle=env.level.aim is Aim.CIRCLE,
        blind=bool(env.batch.timer[member]),
        cost=cost,
    )
