"""The Point robot without a simulator wherever it touches nothing (specification, section B1).

Away from contacts the Point obeys a closed form, a vase rests, and a gremlin repeats the way that a lone gremlin
goes, which MuJoCo shows us once. A member for which all three hold during a whole step glides: a compiled loop
moves it, to within rounding of what MuJoCo computes. Every other member is handed to the simulator. Which of the
two it is depends on the member's own state alone.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from flashbulb.cmdp.navigation.batch import Batch, Rules, empty_batch, rules_of
from flashbulb.cmdp.navigation.clearance import clear_of_box, clear_of_button
from flashbulb.cmdp.navigation.layout import place_bodies
from flashbulb.cmdp.navigation.model import build_model
from flashbulb.cmdp.navigation.physics import SUBSTEPS, SimulatedPhysics
from flashbulb.cmdp.navigation.robots import ROBOTS
from flashbulb.cmdp.navigation.streams import copy
from flashbulb.cmdp.navigation.tasks import Level
from flashbulb.compiling import compiled, inlined

GEAR, FORCE_LIMIT = 0.3, 0.05  # of both actuators
SLIDE_DAMPING, HINGE_DAMPING = 0.01, 0.005
GRAVITY, MAGNETIC = 9.81, -0.5
UNDISTURBED = 1e-10, 1e-9  # how near in place and velocity a body must be to its undisturbed way
SETTLING_STEPS = 60  # after which an untouched vase rests
GREMLIN_SWAY = 0.01  # more than a gremlin moves within one step
SMALL = 0.05  # angle at which the cut-off series of sine and cosine are still exact to the last digit
FAR = 0.4  # beyond which the robot can touch neither box nor button
TAKEN_OFF = 0.18  # height at which a box cannot touch the floor, however it turns


# The mass matrix in the robot's frame is [[m, 0, 0], [0, m, k], [0, k, I]], where k is mass times distance of the
# centre of mass from the origin. To divide it into a force: 1 / m, k, 1 / (I - k^2 / m).
Inertia = tuple[float, float, float]
World = tuple[tuple, tuple, tuple]  # of batch, rules and course: see `opened`
Poses = tuple[np.ndarray, np.ndarray]


class Course(NamedTuple):
    """The Point's inertia, and the undisturbed way of the level's free boxes, one row per step of an episode."""

    moving: Inertia  # with a substep's damping in it: M + h D
    felt: Inertia  # as it is: M
    way: np.ndarray  # (steps, 6): place relative to where the layout put the box, then velocity
    rests: bool  # the way ends in rest, which lasts


class Glide(NamedTuple):
    """Position, heading and their rates; a plain tuple of numbers inside the compiled loop."""

    x: float
    y: float
    yaw: float
    u: float
    v: float
    w: float
    c: float  # cosine and sine of the yaw, most of the work of a substep
    s: float


class GlidingPhysics:
    """Glides the members it can and hands the others to `simulator`."""

    def __init__(self, level: Level, rules: Rules, batch: Batch, simulator: SimulatedPhysics) -> None:
        self.rules, self.batch, self.simulator = rules, batch, simulator
        self.course = chart(level)
        self.others = np.empty(len(batch.physics), dtype=np.int64)  # room for those that must be simulated
        self.world = tuple(batch), tuple(rules), tuple(self.course)

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
    moving, felt = _inertia(mass + h * SLIDE_DAMPING, lever, about + h * HINGE_DAMPING), _inertia(mass, lever, about)
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


def _inertia(mass: float, lever: float, inertia: float) -> Inertia:
    return 1 / mass, lever, 1 / (inertia - lever * lever / mass)


@inlined
def opened(world: World) -> tuple[Batch, Rules, Course]:
    """Plain tuples with their names again: named ones take three times as long to hand over to compiled code."""
    return Batch(*world[0]), Rules(*world[1]), Course(*world[2])


@compiled
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
    path = np.empty((substeps + 1, 4))
    for m in range(len(members)):
        i = members[m]
        row, objects = batch.physics[i], batch.objects[i]
        thrust = GEAR * min(max(actions[m, 0], -FORCE_LIMIT), FORCE_LIMIT)
        u, v, w = row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2]
        at = Glide(row[1], row[2], row[3], u, v, w, math.cos(row[3]), math.sin(row[3]))
        path[0, 0], path[0, 1], path[0, 2], path[0, 3] = at.x, at.y, at.c, at.s
        for k in range(substeps):
            at = _substep(at, thrust, actions[m, 1], rules.timestep, course.moving)
            path[k + 1, 0], path[k + 1, 1], path[k + 1, 2], path[k + 1, 3] = at.x, at.y, at.c, at.s
        step = int(row[0] / (SUBSTEPS * rules.timestep) + 0.5)
        free = substeps == 0 or _undisturbed(row, objects, rules, course, step)
        if free and _clear(path, row, objects, rules):
            _write(at, row, objects, rules, course, step, substeps)
            _feel(at, thrust, actions[m, 1], course.felt, batch.sensors[i])
        else:
            others[count] = m
            count += 1
    return count


@inlined
def _accelerations(at: Glide, thrust: float, turn: float, body: Inertia) -> tuple[float, float, float]:
    """Ahead, to the left, and of the yaw, under motors, damping, and the centrifugal pull of the nose."""
    ahead, left = at.c * at.u + at.s * at.v, at.c * at.v - at.s * at.u
    torque = GEAR * min(max(turn - GEAR * at.w, -FORCE_LIMIT), FORCE_LIMIT) - HINGE_DAMPING * at.w
    per_mass, lever, per_spin = body
    pull, drag = thrust + lever * at.w * at.w - SLIDE_DAMPING * ahead, -SLIDE_DAMPING * left
    spin = (torque - lever * per_mass * drag) * per_spin
    return pull * per_mass, (drag - lever * spin) * per_mass, spin


@inlined
def _substep(at: Glide, thrust: float, turn: float, h: float, body: Inertia) -> Glide:
    """Semi-implicit Euler, implicit in the joint damping: v += h (M + h D)^-1 f, q += h v."""
    ahead, left, spin = _accelerations(at, thrust, turn, body)
    u, v = at.u + h * (at.c * ahead - at.s * left), at.v + h * (at.s * ahead + at.c * left)
    w = at.w + h * spin
    yaw = at.yaw + h * w
    c, s = _turned(at.c, at.s, h * w, yaw)
    return Glide(at.x + h * u, at.y + h * v, yaw, u, v, w, c, s)


@inlined
def _turned(c: float, s: float, angle: float, yaw: float) -> tuple[float, float]:
    """Cosine and sine of `yaw`, given those of `yaw - angle`: by the sum formulas, as long as the series of a small
    angle are exact to the last digit. Half as much work as cos(yaw) and sin(yaw)."""
    square = angle * angle
    if square > SMALL * SMALL:
        return math.cos(yaw), math.sin(yaw)
    sine = angle * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0)))
    versine = square / 2.0 * (1.0 - square / 12.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0)))
    return c - (c * versine + s * sine), s - (s * versine - c * sine)


@inlined
def _feel(at: Glide, thrust: float, turn: float, body: Inertia, sensors: np.ndarray) -> None:
    """Accelerometer, velocimeter, gyro and magnetometer; no contacts."""
    ahead, left, _ = _accelerations(at, thrust, turn, body)
    sensors[:] = 0.0
    sensors[0], sensors[1], sensors[2] = ahead, left, GRAVITY
    sensors[3], sensors[4] = at.c * at.u + at.s * at.v, at.c * at.v - at.s * at.u
    sensors[8] = at.w
    sensors[9], sensors[10] = MAGNETIC * at.s, MAGNETIC * at.c


@inlined
def _undisturbed(row: np.ndarray, objects: np.ndarray, rules: Rules, course: Course, k: int) -> bool:
    """Is every free box on its undisturbed way, upright and at the yaw it was placed with?"""
    if abs(row[0] - k * SUBSTEPS * rules.timestep) > 1e-9:
        return False
    if len(rules.free) and not course.rests and k + 1 >= len(course.way):
        return False
    now = course.way[min(k, len(course.way) - 1)]
    near, slow = UNDISTURBED
    for f in range(len(rules.free)):
        body, column, speed = rules.free[f]
        for d in range(3):
            base = objects[body, d] if d < 2 and not course.rests else 0.0
            if (d == 2 or not course.rests) and not abs(row[column + d] - base - now[d]) < near:
                return False
            if not (abs(row[speed + d] - now[3 + d]) < slow and abs(row[speed + 3 + d]) < slow):
                return False
        if not (abs(row[column + 4]) < near and abs(row[column + 5]) < near):
            return False
        if not course.rests:
            w, z = math.cos(objects[body, 2] / 2), math.sin(objects[body, 2] / 2)
            if not (abs(row[column + 3] - w) < near and abs(row[column + 6] - z) < near):
                return False
    return True


@inlined
def _clear(path: np.ndarray, row: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """Does the robot touch neither box nor button anywhere on its path?"""
    last = len(path) - 1
    travel = 0.0
    for k in range(last):
        travel += abs(path[k + 1, 0] - path[k, 0]) + abs(path[k + 1, 1] - path[k, 1])
    slack = GREMLIN_SWAY if rules.gremlins[1] > rules.gremlins[0] else 0.0
    for f in range(len(rules.free)):
        body = row[rules.free[f, 1] : rules.free[f, 1] + 7]
        if math.hypot(body[0] - path[0, 0], body[1] - path[0, 1]) < FAR + travel:
            for k in range(last + 1):
                if not clear_of_box(path[k, 0], path[k, 1], path[k, 2], path[k, 3], body, slack):
                    return False
    for b in range(rules.buttons[0], rules.buttons[1]):
        if math.hypot(objects[b, 0] - path[0, 0], objects[b, 1] - path[0, 1]) < FAR + travel:
            for k in range(last + 1):
                if not clear_of_button(path[k, 0], path[k, 1], path[k, 2], path[k, 3], objects[b]):
                    return False
    return True


@inlined
def _write(
    at: Glide, row: np.ndarray, objects: np.ndarray, rules: Rules, course: Course, k: int, substeps: int
) -> None:
    """Enter the robot's new state, and the boxes' next places on their ways."""
    row[1], row[2], row[3] = at.x, at.y, at.yaw
    row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2] = at.u, at.v, at.w
    if not substeps:
        return
    for _ in range(substeps):  # summed up like the simulator does
        row[0] += rules.timestep
    after = course.way[min(k + 1, len(course.way) - 1)]
    for f in range(len(rules.free)):
        body, column, speed = rules.free[f]
        row[column + 2] = after[2]
        copy(after[3:], row[speed:], 3)
        if not course.rests:
            row[column], row[column + 1] = objects[body, 0] + after[0], objects[body, 1] + after[1]
