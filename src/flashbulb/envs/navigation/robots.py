"""The robots in compiled code: how they are placed and what they observe (their own sensors, then the lidars)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flashbulb.envs.lidar import BINS, add_target
from flashbulb.envs.navigation.model import ROBOT_HEIGHT
from flashbulb.envs.navigation.task_state import Rules, TaskState, copy
from flashbulb.jit import jit, jit_helper, jit_inline


@dataclass(frozen=True)
class Robot:
    """`place` writes a pose at rest; `observe` fills the poses and observations of environments."""

    name: str
    place: Callable[..., None]
    observe: Callable[..., None]
    qpos: int  # number of qpos entries of the robot
    sensors: int  # number of its sensor values
    proprioception: int  # number of observation entries made of them, before the lidars


@jit_inline
def _add_object(x: float, y: float, pos: np.ndarray, mat: np.ndarray, max_range: float, bins: np.ndarray) -> None:
    """Enter an object at world (x, y), on the floor, into the lidar of a robot with this pose."""
    dx, dy, dz = x - pos[0], y - pos[1], -pos[2]
    ahead = mat[0, 0] * dx + mat[1, 0] * dy + mat[2, 0] * dz
    left = mat[0, 1] * dx + mat[1, 1] * dy + mat[2, 1] * dz
    add_target(bins, ahead, left, max_range, 2 * math.pi)


@jit_helper
def write_lidars(
    state: TaskState,
    rules: Rules,
    indices: np.ndarray,
    pos: np.ndarray,
    mat: np.ndarray,
    first: int,
    obs: np.ndarray,
) -> None:
    """Fill `obs[:, first:]` of these environments, one lidar per group in the level's order."""
    for i in indices:
        here, frame = pos[i], mat[i]
        obs[i, first:] = 0.0
        for g in range(len(rules.lidars)):
            begin, end, column, by_timer = rules.lidars[g]
            if by_timer and state.timer[i] != 0:
                continue
            bins = obs[i, first + BINS * g : first + BINS * (g + 1)]
            for k in range(begin, end):
                if column >= 0:
                    at = column + 7 * (k - begin)
                    x, y = state.physics[i, at], state.physics[i, at + 1]
                else:
                    x, y = state.objects[i, k, 0], state.objects[i, k, 1]
                _add_object(x, y, here, frame, rules.lidar_range, bins)


@jit
def place_point(state: TaskState, indices: np.ndarray) -> None:
    for i in indices:
        copy(state.objects[i, 0], state.physics[i, 1:], 3)


@jit
def place_car(state: TaskState, indices: np.ndarray) -> None:
    for i in indices:
        row, agent = state.physics[i], state.objects[i, 0]
        copy(agent, row[1:], 2)
        row[3] = ROBOT_HEIGHT
        row[4] = math.cos(agent[2] / 2)
        row[7] = math.sin(agent[2] / 2)
        row[10] = 1.0  # the ball's quaternion


@jit
def observe_point(
    state: TaskState, rules: Rules, indices: np.ndarray, pos: np.ndarray, mat: np.ndarray, obs: np.ndarray
) -> None:
    for i in indices:
        row = state.physics[i]
        c, s = math.cos(row[3]), math.sin(row[3])
        pos[i, 0], pos[i, 1], pos[i, 2] = row[1], row[2], ROBOT_HEIGHT
        mat[i] = 0.0
        mat[i, 0, 0], mat[i, 0, 1], mat[i, 1, 0], mat[i, 1, 1], mat[i, 2, 2] = c, -s, s, c, 1.0
        copy(state.sensors[i], obs[i], 12)
    write_lidars(state, rules, indices, pos, mat, 12, obs)


@jit_helper
def rotation(quaternion: np.ndarray, mat: np.ndarray) -> None:
    """The matrix of a quaternion, normalised first."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / length, x / length, y / length, z / length
    mat[0, 0], mat[0, 1], mat[0, 2] = w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)
    mat[1, 0], mat[1, 1], mat[1, 2] = 2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)
    mat[2, 0], mat[2, 1], mat[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z


@jit
def observe_car(
    state: TaskState, rules: Rules, indices: np.ndarray, pos: np.ndarray, mat: np.ndarray, obs: np.ndarray
) -> None:
    ball = np.empty((3, 3))
    for i in indices:
        copy(state.physics[i, 1:], pos[i], 3)
        rotation(state.physics[i, 4:8], mat[i])
        copy(state.sensors[i], obs[i], 15)
        rotation(state.sensors[i, 15:19], ball)
        for k in range(9):
            obs[i, 15 + k] = ball[k // 3, k % 3]
    write_lidars(state, rules, indices, pos, mat, 24, obs)


ROBOTS: dict[str, Robot] = {
    "Point": Robot("Point", place_point, observe_point, qpos=3, sensors=12, proprioception=12),
    "Car": Robot("Car", place_car, observe_car, qpos=13, sensors=19, proprioception=24),
}
