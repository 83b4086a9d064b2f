"""Vases and gremlins that nobody touches: where they are without a simulator.

An untouched vase is at rest, and a gremlin follows the same path as a gremlin without obstacles. MuJoCo computes that
path once per level. A vase that was pushed over is a cube on another of its faces, and rests there as it did before.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from flashbulb.envs.navigation.layout import place_bodies
from flashbulb.envs.navigation.model import build_model
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, MujocoPhysics
from flashbulb.envs.navigation.robots import ROBOTS
from flashbulb.envs.navigation.task_state import Rules, copy, empty_state, task_rules
from flashbulb.envs.navigation.tasks import Level
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.jit import jit_inline

UNDISTURBED = 1e-10, 1e-9  # tolerance in position and velocity of a body on its undisturbed path
SETTLING_STEPS = 60  # after which an untouched vase is at rest
GREMLIN_SPEED = 0.5  # upper bound, once it has left the floor
TAKEN_OFF = 0.18  # height at which a box cannot touch the floor in any orientation


class BoxPath(NamedTuple):
    """The undisturbed path of the level's free boxes, one row per step of an episode."""

    path: np.ndarray  # (steps, 6): position relative to the box's place in the layout, then velocity
    at_rest: bool  # whether the path ends at rest


@cache
def box_path(robot: str, level: Level, backend: PhysicsBackend) -> BoxPath:
    """Let MuJoCo simulate one episode with the robot far away."""
    model = build_model(robot, level)
    rules = task_rules(level, model, ROBOTS[robot].qpos, ROBOTS[robot].sensors)
    at_rest = rules.gremlins[0] == rules.gremlins[1]
    if not len(rules.free):
        return BoxPath(np.zeros((1, 6)), at_rest)
    single = empty_state(1, rules, model)
    physics = MujocoPhysics(model, rules, single, 1, backend)
    single.objects[0, :, 0] = 10.0 * np.arange(len(rules.keepout))  # far from each other
    place_bodies(single, rules, np.array([0]))
    ROBOTS[robot].place(single, np.array([0]))
    row, column, speed = rules.free[0]
    steps = SETTLING_STEPS if at_rest else rules.episode_steps
    path = np.zeros((steps + 1, 6))
    for k in range(steps + 1):
        path[k, :3] = single.physics[0, column : column + 3] - [single.objects[0, row, 0], 0.0, 0.0]
        path[k, 3:] = single.physics[0, speed : speed + 3]
        physics.advance(np.array([0]), np.zeros((1, 2)))
    physics.close()
    if at_rest:  # boxes fall straight down; other components are rounding errors
        path[:, [0, 1, 3, 4]] = 0.0
    else:  # how a gremlin leaves the floor depends on its yaw, so its path is unknown until it has done so
        started = (path[:, 2] > TAKEN_OFF) & (np.linalg.norm(path[:, 3:], axis=1) < GREMLIN_SPEED)
        path[~started] = np.nan
    return BoxPath(path, at_rest)


@jit_inline
def steps_so_far(time: float, timestep: float) -> int:
    return int(time / (SUBSTEPS * timestep) + 0.5)


@jit_inline
def gremlin_sway(rules: Rules) -> float:
    """How far a gremlin moves at most within one step; 0 without gremlins."""
    return GREMLIN_SPEED * SUBSTEPS * rules.timestep if rules.gremlins[1] > rules.gremlins[0] else 0.0


@jit_inline
def boxes_undisturbed(row: np.ndarray, objects: np.ndarray, rules: Rules, boxes: BoxPath) -> bool:
    """Whether all boxes of an environment are on their undisturbed paths: gremlins upright and at the yaw they were
    placed with, vases flat on a face."""
    k = steps_so_far(row[0], rules.timestep)
    known = len(rules.free) == 0 or boxes.at_rest or k + 1 < len(boxes.path)
    undisturbed = known and abs(row[0] - k * SUBSTEPS * rules.timestep) <= 1e-9
    if undisturbed:
        now = boxes.path[min(k, len(boxes.path) - 1)]
        for f in range(len(rules.free)):
            body, column, speed = rules.free[f]
            undisturbed &= _box_undisturbed(row[column:], row[speed:], now, objects[body], boxes.at_rest)
    return undisturbed


@jit_inline
def _box_undisturbed(box: np.ndarray, rates: np.ndarray, now: np.ndarray, placed: np.ndarray, at_rest: bool) -> bool:
    near, slow = UNDISTURBED
    for d in range(3):
        base = placed[d] if d < 2 and not at_rest else 0.0
        if (d == 2 or not at_rest) and not abs(box[d] - base - now[d]) < near:
            return False
        if not (abs(rates[d] - now[3 + d]) < slow and abs(rates[3 + d]) < slow):
            return False
    if at_rest:
        return _lies_flat(box[3], box[4], box[5], box[6])
    upright = abs(box[4]) < near and abs(box[5]) < near
    return upright and abs(box[3] - math.cos(placed[2] / 2)) < near and abs(box[6] - math.sin(placed[2] / 2)) < near


@jit_inline
def _lies_flat(w: float, x: float, y: float, z: float) -> bool:
    """Whether one axis of a box with this quaternion is vertical, so that the others have no part that is."""
    a, b, c = abs(2 * (x * z - w * y)), abs(2 * (y * z + w * x)), abs(1 - 2 * (x * x + y * y))
    return a + b + c - max(a, b, c) < 2 * UNDISTURBED[0]


@jit_inline
def finish_step(row: np.ndarray, objects: np.ndarray, rules: Rules, boxes: BoxPath) -> None:
    """Put the boxes of an environment where they are one step later, and its clock."""
    k = steps_so_far(row[0], rules.timestep)
    for _ in range(SUBSTEPS):  # added up like the simulator does
        row[0] += rules.timestep
    for f in range(len(rules.free)):
        body, column, speed = rules.free[f]
        after = boxes.path[min(k + 1, len(boxes.path) - 1)]
        row[column + 2] = after[2]
        copy(after[3:], row[speed:], 3)
        if not boxes.at_rest:
            row[column], row[column + 1] = objects[body, 0] + after[0], objects[body, 1] + after[1]
