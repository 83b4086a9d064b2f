"""The Point robot without a simulator wherever it touches nothing (specification, section B1).

Away from contacts the Point obeys a closed form, a vase rests, and a gremlin repeats the way that a lone gremlin
goes, which MuJoCo shows us once. A member for which all three hold during a whole step glides: a compiled loop
moves it, to within rounding of what MuJoCo computes. Every other member is handed to the simulator. Which of the
two it is depends on the member's own state alone.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numba import types
from numba.experimental import structref

from flashbulb.envs.navigation.clearance import clear_of_box, clear_of_button
from flashbulb.envs.navigation.layout import place_bodies
from flashbulb.envs.navigation.model import build_model
from flashbulb.envs.navigation.motion import (
    FORCE_LIMIT,
    GEAR,
    HINGE_DAMPING,
    LANES,
    POSE,
    QUANTITIES,
    SLIDE_DAMPING,
    THRUST,
    TURN,
    YAW,
    C,
    Inertia,
    S,
    U,
    V,
    W,
    X,
    Y,
    accelerations,
    inertia_of,
    move,
)
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, SimulatedPhysics
from flashbulb.envs.navigation.random_streams import copy
from flashbulb.envs.navigation.robots import ROBOTS
from flashbulb.envs.navigation.task_state import Batch, Rules, empty_batch, rules_of
from flashbulb.envs.navigation.tasks import Level
from flashbulb.jit import jit, jit_inline

GRAVITY, MAGNETIC = 9.81, -0.5
UNDISTURBED = 1e-10, 1e-9  # how near in place and velocity a body must be to its undisturbed way
SETTLING_STEPS = 60  # after which an untouched vase rests
GREMLIN_SWAY = 0.01  # more than a gremlin moves within one step
FAR = 0.4  # beyond which the robot can touch neither box nor button
TAKEN_OFF = 0.18  # height at which a box cannot touch the floor, however it turns

Poses = tuple[np.ndarray, np.ndarray]


class Course(NamedTuple):
    """The Point's inertia, and the undisturbed way of the level's free boxes, one row per step of an episode."""

    moving: Inertia  # with a substep's damping in it: M + h D
    felt: Inertia  # as it is: M
    way: np.ndarray  # (steps, 6): place relative to where the layout put the box, then velocity
    rests: bool  # the way ends in rest, which lasts


@structref.register
class _WorldType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class World(structref.StructRefProxy):
    """What a step needs, as one object of compiled code: to hand over forty arrays and numbers one by one takes longer
    than to move eight Points."""

    batch: Batch
    rules: Rules
    course: Course
    poses: Poses
    everyone: np.ndarray  # all members
    others: np.ndarray  # room for those that must be simulated


structref.define_proxy(World, _WorldType, ["batch", "rules", "course", "poses", "everyone", "others"])


class GlidingPhysics:
    """Glides the members it can and hands the others to `simulator`."""

    def __init__(self, level: Level, rules: Rules, batch: Batch, poses: Poses, simulator: SimulatedPhysics) -> None:
        self.rules, self.batch, self.simulator = rules, batch, simulator
        self.course = chart(level)
        everyone = np.arange(len(batch.physics))
        self.others = np.empty_like(everyone)
        self.world = world_of(batch, rules, self.course, poses, everyone, self.others)

    def sense(self, members: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of the members where they stand, under their actions."""
        count = glide(self.batch, self.rules, self.course, members, actions, 0, self.others)
        if count:
            left = self.others[:count]
            self.simulator.sense(members[left], actions[left])

    def close(self) -> None:
        self.simulator.close()


@cache
def chart(level: Level) -> Course:
    """Read the inertia off the mass matrix, and let MuJoCo play one episode with the robot far away."""
    point = ROBOTS["Point"]
    model = build_model(point, level)
    rules = rules_of(level, model, point.qpos, point.senses)
    data, inertia = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, inertia)
    mass, lever, about = inertia[0, 0], inertia[1, 2], inertia[2, 2]
    h = rules.timestep
    moving = inertia_of(mass + h * SLIDE_DAMPING, lever, about + h * HINGE_DAMPING)
    felt = inertia_of(mass, lever, about)
    rests = rules.gremlins[0] == rules.gremlins[1]
    if not len(rules.free):
        return Course(moving, felt, np.zeros((1, 6)), rests)
    lone = empty_batch(1, rules, model)
    physics = SimulatedPhysics(model, rules, lone, threads=1)
    lone.objects[0, :, 0] = 10.0 * np.arange(len(rules.keepout))  # nobody meets anybody
    place_bodies(lone, rules, np.array([0]))
    row, column, speed = rules.free[0]
    steps = SETTLING_STEPS if rests else rules.episode_steps
    way = np.zeros((steps + 1, 6))
    for k in range(steps + 1):
        way[k, :3] = lone.physics[0, column : column + 3] - [lone.objects[0, row, 0], 0.0, 0.0]
        way[k, 3:] = lone.physics[0, speed : speed + 3]
        physics.advance(np.array([0]), np.zeros((1, 2)))
    physics.close()
    if rests:  # straight down; the rest is rounding
        way[:, [0, 1, 3, 4]] = 0.0
    else:  # how a gremlin leaves the floor depends on its yaw: there is no way to be on before it has done so
        started = (way[:, 2] > TAKEN_OFF) & (np.linalg.norm(way[:, 3:], axis=1) * 10 * rules.timestep < GREMLIN_SWAY)
        way[~started] = np.nan
    return Course(moving, felt, way, rests)


@jit
def world_of(
    batch: Batch, rules: Rules, course: Course, poses: Poses, everyone: np.ndarray, others: np.ndarray
) -> World:
    return World(batch, rules, course, poses, everyone, others)


@jit
def glide(
    batch: Batch,
    rules: Rules,
    course: Course,
    members: np.ndarray,
    actions: np.ndarray,
    substeps: int,
    others: np.ndarray,
) -> int:
    """Move the members that touch nothing by so many substeps and read their sensors.

    Members that must be simulated are left as they are; their places in `members` go to `others`, and their
    number is returned.
    """
    count = 0
    at, path, free = np.empty(QUANTITIES), np.empty((substeps + 1, POSE)), np.empty(LANES, np.bool_)
    for first in range(0, len(members), LANES):
        lanes = members[first : first + LANES]
        _load(batch, rules, lanes, actions[first:], at)
        copy(at, path[0], POSE)
        for k in range(substeps):
            move(at, rules.timestep, course.moving)
            copy(at, path[k + 1], POSE)
        free[:] = True
        if substeps:
            _keep_undisturbed(batch, rules, course, lanes, free)
        _keep_clear(path, batch, rules, lanes, free)
        _write(at, batch, rules, course, lanes, free, substeps)
        _feel(at, course.felt, lanes, free, batch.sensors)
        for j in range(len(lanes)):
            if not free[j]:
                others[count] = first + j
                count += 1
    return count


# The functions below take all lanes in one call: a call that passes tuples of arrays counts every array's references.


@jit_inline
def _load(batch: Batch, rules: Rules, lanes: np.ndarray, actions: np.ndarray, at: np.ndarray) -> None:
    """Put members into the lanes; the last one also into those that are left."""
    for j in range(LANES):
        m = min(j, len(lanes) - 1)
        row = batch.physics[lanes[m]]
        at[X + j], at[Y + j], at[YAW + j] = row[1], row[2], row[3]
        at[C + j], at[S + j] = math.cos(row[3]), math.sin(row[3])
        at[U + j], at[V + j], at[W + j] = row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2]
        at[THRUST + j] = GEAR * min(max(actions[m, 0], -FORCE_LIMIT), FORCE_LIMIT)
        at[TURN + j] = actions[m, 1]


@jit_inline
def _steps_so_far(time: float, timestep: float) -> int:
    return int(time / (SUBSTEPS * timestep) + 0.5)


@jit_inline
def _keep_undisturbed(batch: Batch, rules: Rules, course: Course, lanes: np.ndarray, free: np.ndarray) -> None:
    """Who is not disturbed stays free: every free box is on its way, upright and at the yaw it was placed with."""
    for j in range(len(lanes)):
        row = batch.physics[lanes[j]]
        k = _steps_so_far(row[0], rules.timestep)
        lasts = len(rules.free) == 0 or course.rests or k + 1 < len(course.way)
        free[j] &= lasts and abs(row[0] - k * SUBSTEPS * rules.timestep) <= 1e-9
        if free[j]:
            for f in range(len(rules.free)):
                body, column, speed = rules.free[f]
                now, placed = course.way[min(k, len(course.way) - 1)], batch.objects[lanes[j], body]
                free[j] &= _on_its_way(row[column:], row[speed:], now, placed, course.rests)


@jit_inline
def _on_its_way(box: np.ndarray, rates: np.ndarray, now: np.ndarray, placed: np.ndarray, rests: bool) -> bool:
    near, slow = UNDISTURBED
    for d in range(3):
        base = placed[d] if d < 2 and not rests else 0.0
        if (d == 2 or not rests) and not abs(box[d] - base - now[d]) < near:
            return False
        if not (abs(rates[d] - now[3 + d]) < slow and abs(rates[3 + d]) < slow):
            return False
    if not (abs(box[4]) < near and abs(box[5]) < near):
        return False
    if rests:
        return True
    return abs(box[3] - math.cos(placed[2] / 2)) < near and abs(box[6] - math.sin(placed[2] / 2)) < near


@jit_inline
def _keep_clear(path: np.ndarray, batch: Batch, rules: Rules, lanes: np.ndarray, free: np.ndarray) -> None:
    """Who touches neither box nor button anywhere on its path stays free."""
    slack = GREMLIN_SWAY if rules.gremlins[1] > rules.gremlins[0] else 0.0
    for j in range(len(lanes)):
        x, y, travel = path[0, X + j], path[0, Y + j], 0.0
        for k in range(len(path) - 1):
            travel += abs(path[k + 1, X + j] - path[k, X + j]) + abs(path[k + 1, Y + j] - path[k, Y + j])
        for f in range(len(rules.free)):
            body = batch.physics[lanes[j], rules.free[f, 1] :]
            if math.hypot(body[0] - x, body[1] - y) < FAR + travel:
                for k in range(len(path)):
                    pose = path[k, X + j], path[k, Y + j], path[k, C + j], path[k, S + j]
                    free[j] &= clear_of_box(*pose, body, slack)
        for b in range(rules.buttons[0], rules.buttons[1]):
            centre = batch.objects[lanes[j], b]
            if math.hypot(centre[0] - x, centre[1] - y) < FAR + travel:
                for k in range(len(path)):
                    pose = path[k, X + j], path[k, Y + j], path[k, C + j], path[k, S + j]
                    free[j] &= clear_of_button(*pose, centre)


@jit_inline
def _write(
    at: np.ndarray, batch: Batch, rules: Rules, course: Course, lanes: np.ndarray, free: np.ndarray, substeps: int
) -> None:
    """Enter the new states of the free: the robot's, and the boxes' next places on their ways."""
    for j in range(len(lanes)):
        if not free[j]:
            continue
        row, objects = batch.physics[lanes[j]], batch.objects[lanes[j]]
        k = _steps_so_far(row[0], rules.timestep)
        row[1], row[2], row[3] = at[X + j], at[Y + j], at[YAW + j]
        row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2] = at[U + j], at[V + j], at[W + j]
        for _ in range(substeps):  # summed up like the simulator does
            row[0] += rules.timestep
        for f in range(len(rules.free) if substeps else 0):
            body, column, speed = rules.free[f]
            after = course.way[min(k + 1, len(course.way) - 1)]
            row[column + 2] = after[2]
            copy(after[3:], row[speed:], 3)
            if not course.rests:
                row[column], row[column + 1] = objects[body, 0] + after[0], objects[body, 1] + after[1]


@jit_inline
def _feel(at: np.ndarray, body: Inertia, lanes: np.ndarray, free: np.ndarray, sensors: np.ndarray) -> None:
    """Accelerometer, velocimeter, gyro and magnetometer of the free; no contacts."""
    for j in range(len(lanes)):
        if not free[j]:
            continue
        felt = sensors[lanes[j]]
        c, s, u, v, w = at[C + j], at[S + j], at[U + j], at[V + j], at[W + j]
        ahead, left, _ = accelerations(c, s, u, v, w, at[THRUST + j], at[TURN + j], body)
        felt[:] = 0.0
        felt[0], felt[1], felt[2] = ahead, left, GRAVITY
        felt[3], felt[4] = c * u + s * v, c * v - s * u
        felt[8] = w
        felt[9], felt[10] = MAGNETIC * s, MAGNETIC * c
