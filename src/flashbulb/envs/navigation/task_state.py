"""The state of a batch of navigation tasks as arrays, and the task's constants for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from flashbulb.envs.navigation.tasks import Body, Level
from flashbulb.envs.rng import MT_WORDS
from flashbulb.jit import jit_inline


@jit_inline
def copy(source: np.ndarray, target: np.ndarray, count: int) -> None:
    """`target[:count] = source[:count]`, which takes Numba seconds longer to compile as a slice assignment."""
    for k in range(count):
        target[k] = source[k]


class TaskState(NamedTuple):
    """Everything that the future depends on, one row per environment; a snapshot is a copy of these arrays."""

    physics: np.ndarray  # (n, 1 + nq + nv): time, qpos, qvel; qpos begins with the robot's x, y
    sensors: np.ndarray  # (n, sensors): readings at `physics`
    objects: np.ndarray  # (n, objects, 3): x, y, yaw of agent and groups at the reset; the goal's row is current
    last_distance: np.ndarray  # (n,): to the goal, after the last step
    timer: np.ndarray  # (n,): steps for which the buttons stay inactive
    button: np.ndarray  # (n,): which button is the goal
    steps: np.ndarray  # (n,): since the episode began
    rng: np.ndarray  # (n, 625): MT19937, see `flashbulb.envs.rng`


class Rules(NamedTuple):
    """The constants of a level and its model. Rows index `TaskState.objects`, columns index `TaskState.physics`."""

    low: np.ndarray  # (objects, 2): smallest x, y a placement may draw
    width: np.ndarray  # (objects, 2): size of the rectangle it draws from
    keepout: np.ndarray  # (objects,)
    pinned: np.ndarray  # (objects, 2): exact place, or NaN
    lidars: np.ndarray  # (groups, 4): first row, end row, column of the first free body or -1, inactive by timer
    free: np.ndarray  # (free bodies, 3): row, column of x, column of its velocity
    boundary: np.ndarray  # (2,): |x|, |y| beyond which there is a cost
    goal: int  # row of the goal, -1 without one
    hazards: tuple[int, int]  # rows
    buttons: tuple[int, int]
    gremlins: tuple[int, int]
    vases: tuple[int, int]
    costs: tuple[bool, bool]  # of touching a wrong button, a vase
    touch: int  # sensor column of the first contact flag: buttons, then gremlins; or vases
    velocity: int  # column of the robot's world velocity
    lidar_range: float
    episode_steps: int
    timestep: float


FREE = (Body.VASE, Body.GREMLIN)  # bodies that the simulator moves
PIN = 1e-9  # half-width of the square from which a pinned object's place is drawn


def task_rules(level: Level, model: mujoco.MjModel, robot_qpos: int, robot_sensors: int) -> Rules:
    """The rules of a level with its compiled model."""
    names, boxes, keepout, pinned = (
        ["agent"],
        [(0.0, 0.0, level.agent_extent or level.extent)],
        [level.agent_keepout],
        [],
    )
    pinned.append((np.nan, np.nan))
    for g in level.groups:
        for k in range(g.count):
            place = g.pinned[k] if g.pinned else (np.nan, np.nan)
            boxes.append((*place, g.keepout + PIN) if g.pinned else (0.0, 0.0, level.extent))
            names.append(g.name)
            keepout.append(g.keepout)
            pinned.append(place)

    def rows(name: str) -> tuple[int, int]:
        first = names.index(name) if name in names else 0
        return first, first + names.count(name)

    free, lidars, column = [], [], 1 + robot_qpos
    bodies = sum(g.count for g in level.groups if g.body in FREE)
    speed = 1 + model.nq + model.nv - 6 * bodies  # free bodies come last
    for g in level.groups:
        first, end = rows(g.name)
        moves = g.body in FREE
        if g.lidar:
            lidars.append((first, end, column if moves else -1, int(g.body is Body.BUTTON)))
        if moves:
            free += [(row, column + 7 * k, speed + 6 * k) for k, row in enumerate(range(first, end))]
            column, speed = column + 7 * g.count, speed + 6 * g.count
    low = [(x - e + k, y - e + k) for (x, y, e), k in zip(boxes, keepout, strict=True)]
    high = [(x + e - k, y + e - k) for (x, y, e), k in zip(boxes, keepout, strict=True)]
    return Rules(
        low=np.array(low),
        width=np.array(high) - np.array(low),
        keepout=np.array(keepout),
        pinned=np.array(pinned),
        lidars=np.array(lidars, dtype=np.int64).reshape(-1, 4),
        free=np.array(free, dtype=np.int64).reshape(-1, 3),
        boundary=np.array(level.boundary),
        goal=rows("goal")[0] if "goal" in names else -1,
        hazards=rows("hazards"),
        buttons=rows("buttons"),
        gremlins=rows("gremlins"),
        vases=rows("vases"),
        costs=(level.is_constrained("buttons"), level.is_constrained("vases")),
        touch=robot_sensors,
        velocity=1 + model.nq,
        lidar_range=level.lidar_range,
        episode_steps=level.episode_steps,
        timestep=float(model.opt.timestep),
    )


def empty_state(count: int, rules: Rules, model: mujoco.MjModel) -> TaskState:
    """Arrays of zeros for `count` environments."""
    return TaskState(
        physics=np.zeros((count, 1 + model.nq + model.nv)),
        sensors=np.zeros((count, model.nsensordata)),
        objects=np.zeros((count, len(rules.keepout), 3)),
        last_distance=np.zeros(count),
        timer=np.zeros(count, dtype=np.int64),
        button=np.zeros(count, dtype=np.int64),
        steps=np.zeros(count, dtype=np.int64),
        rng=np.zeros((count, MT_WORDS), dtype=np.uint32),
    )
