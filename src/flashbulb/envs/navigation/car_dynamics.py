"""Compiled dynamics of the Car, used wherever it touches nothing but the floor.

The equations are those of `car_motion.py` and `car_contact.py`, and vases and gremlins are on the paths of
`free_boxes.py`. An environment is left to the simulator for a whole step if during the step the robot may touch a box
or a button, or a part of it other than its wheels and its ball the floor; if a box is not on its path; or if rounding
decides whether a wheel touches the floor, as it does in the first step of an episode. Which of the two it is depends
on the environment's own state alone.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.car_contact import N, U
from flashbulb.envs.navigation.car_motion import (
    ANGULAR,
    BALL_QUAT,
    GRAVITY,
    LINEAR,
    MOTOR_LIMIT,
    POS,
    ROTATION,
    accelerate,
    load_car,
    move_car,
    new_car,
    store_car,
)
from flashbulb.envs.navigation.free_boxes import BoxPath, box_path, boxes_undisturbed, finish_step, gremlin_sway
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, MujocoPhysics
from flashbulb.envs.navigation.task_state import Rules, TaskState
from flashbulb.envs.navigation.tasks import BOX_HALF, BUTTON_RADIUS, Level
from flashbulb.envs.rotations import into_frame
from flashbulb.jit import jit, jit_helper

MAGNETIC = -0.5
# The Car seen from above, in its own axes: the least and the largest x and y of rectangles that cover it. Body and back
# bumper; wheels; front bumper and ball.
OUTLINE = ((-0.1, 0.1, -0.1, 0.16), (-0.155, 0.155, 0.05, 0.15), (-0.05, 0.05, -0.175, -0.05))
CAR_REACH = math.hypot(0.155, 0.15)  # largest distance from the origin
BOX_REACH = math.sqrt(2) * BOX_HALF
TILTED_REACH = math.sqrt(3) * BOX_HALF
UPRIGHT = 1e-9
GAP = 1e-6  # objects nearer than this count as touching
# A tilted Car: sine of the angle beyond which it is left to the simulator, and how far its parts may then be from where
# they are seen when it is level.
TIPPED, LEAN = 0.2, 0.15
LOWEST = -0.05  # bottom of body and bumpers


class CarPhysics:
    """Steps Cars by compiled code where possible; the rest is left to `simulator`."""

    def __init__(self, level: Level, rules: Rules, state: TaskState, simulator: MujocoPhysics) -> None:
        self.rules, self.state, self.simulator = rules, state, simulator
        self.boxes = box_path("Car", level, simulator.backend)
        self.car = new_car(simulator.model)
        self._to_simulate, self._order = np.empty((2, len(state.physics)), np.int64)

    def advance(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """One step of these environments, under one action each."""
        count = disturbed_first(self.state, self.rules, self.boxes, indices, self._order)
        disturbed, others = self._order[:count], self._order[count : len(indices)]
        left = others[:0]

        def move_others() -> None:
            nonlocal left
            left = others[self._step(indices[others], actions[others], SUBSTEPS)]

        self.simulator.advance(indices[disturbed], actions[disturbed], move_others)
        if len(left):
            self.simulator.advance(indices[left], actions[left])

    def sense(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of these environments at their states, under one action each."""
        left = self._step(indices, actions, 0)
        if len(left):
            self.simulator.sense(indices[left], actions[left])

    def _step(self, indices: np.ndarray, actions: np.ndarray, substeps: int) -> np.ndarray:
        """Positions in `indices` of those that must be simulated."""
        count = step_cars(self.state, self.rules, self.boxes, self.car, indices, actions, substeps, self._to_simulate)
        return self._to_simulate[:count]

    def close(self) -> None:
        self.simulator.close()


@jit
def disturbed_first(state: TaskState, rules: Rules, boxes: BoxPath, indices: np.ndarray, order: np.ndarray) -> int:
    """Sort the positions in `indices`: first those of environments in which a box is not on its path, whose number is
    returned."""
    count, last = 0, len(indices)
    for m in range(len(indices)):
        i = indices[m]
        if boxes_undisturbed(state.physics[i], state.objects[i], rules, boxes):
            last -= 1
            order[last] = m
        else:
            order[count] = m
            count += 1
    return count


@jit
def step_cars(
    state: TaskState,
    rules: Rules,
    boxes: BoxPath,
    car: np.ndarray,
    indices: np.ndarray,
    actions: np.ndarray,
    substeps: int,
    to_simulate: np.ndarray,
) -> int:
    """Move the Cars that touch nothing but the floor by so many substeps and write their sensors; their boxes are on
    their paths.

    Environments that must be simulated stay unchanged; their positions in `indices` are written to `to_simulate`, and
    their number is returned. `car` is the array of a Car as `new_car` makes it; a copy is the memory of all of them.
    """
    count, at = 0, car.copy()
    for m in range(len(indices)):
        i = indices[m]
        row, objects = state.physics[i], state.objects[i]
        load_car(at, row, rules.velocity)
        if _step_car(at, row, objects, rules, actions[m], substeps):
            if substeps:
                store_car(at, row, rules.velocity)
                finish_step(row, objects, rules, boxes)
            _write_sensors(at, row[rules.velocity :], state.sensors[i])
        else:
            to_simulate[count] = m
            count += 1
    return count


@jit_helper
def _step_car(
    at: np.ndarray, row: np.ndarray, objects: np.ndarray, rules: Rules, action: np.ndarray, substeps: int
) -> bool:
    """Move the Car and compute the accelerations where it arrives; false if it must be simulated instead."""
    left = min(max(action[0], -MOTOR_LIMIT), MOTOR_LIMIT)
    right = min(max(action[1], -MOTOR_LIMIT), MOTOR_LIMIT)
    for k in range(N):
        at[U + k] = 0.0
    for k in range(substeps + 1):
        if not accelerate(at, left, right) or not _keeps_clear(at, row, objects, rules):
            return False
        if k < substeps:
            move_car(at)
    return True


@jit_helper
def _keeps_clear(at: np.ndarray, row: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """Whether only wheels and ball may touch the floor, and nothing a box or a button."""
    x, y, r = at[POS], at[POS + 1], ROTATION
    tilt = math.sqrt(at[r + 6] * at[r + 6] + at[r + 7] * at[r + 7])
    lowest = at[POS + 2] - 0.1 * abs(at[r + 6]) - 0.175 * abs(at[r + 7]) + at[r + 8] * LOWEST
    if not (tilt < TIPPED and at[r + 8] > 0.0 and lowest > GAP):
        return False
    length = math.sqrt(at[r] * at[r] + at[r + 3] * at[r + 3])
    c, s, slack = at[r] / length, at[r + 3] / length, GAP + LEAN * tilt
    for b in range(rules.buttons[0], rules.buttons[1]):
        if not car_clear_of_button(objects[b, 0] - x, objects[b, 1] - y, c, s, slack):
            return False
    slack += gremlin_sway(rules)
    for f in range(len(rules.free)):
        body = rules.free[f, 1]
        dx, dy = row[body] - x, row[body + 1] - y
        if abs(row[body + 4]) > UPRIGHT or abs(row[body + 5]) > UPRIGHT:
            if math.hypot(dx, dy) < CAR_REACH + TILTED_REACH + slack:
                return False
        else:
            w, z = row[body + 3], row[body + 6]
            if not car_clear_of_box(dx, dy, c, s, w * w - z * z, 2 * w * z, slack):
                return False
    return True


@jit_helper
def car_clear_of_button(dx: float, dy: float, c: float, s: float, slack: float) -> bool:
    """Whether the Car is clear of a button at (dx, dy) from it; (c, s) is the direction of its x axis."""
    if dx * dx + dy * dy > (CAR_REACH + BUTTON_RADIUS + slack) ** 2:
        return True
    x, y = c * dx + s * dy, c * dy - s * dx
    for x0, x1, y0, y1 in OUTLINE:
        if math.hypot(max(x0 - x, x - x1, 0.0), max(y0 - y, y - y1, 0.0)) < BUTTON_RADIUS + slack:
            return False
    return True


@jit_helper
def car_clear_of_box(dx: float, dy: float, c: float, s: float, bc: float, bs: float, slack: float) -> bool:
    """Whether the Car is clear of an upright box at (dx, dy) from it, whose x axis has the direction (bc, bs)."""
    if dx * dx + dy * dy > (CAR_REACH + BOX_REACH + slack) ** 2:
        return True
    x, y = c * dx + s * dy, c * dy - s * dx
    tc, ts = bc * c + bs * s, bs * c - bc * s  # the box's direction in the Car's axes
    wide = BOX_HALF * (abs(tc) + abs(ts))
    for x0, x1, y0, y1 in OUTLINE:
        # Two rectangles are apart if one of their four side directions separates them.
        px, py, hx, hy = x - 0.5 * (x0 + x1), y - 0.5 * (y0 + y1), 0.5 * (x1 - x0), 0.5 * (y1 - y0)
        gap = max(abs(px) - hx, abs(py) - hy) - wide
        gap = max(gap, abs(tc * px + ts * py) - abs(tc) * hx - abs(ts) * hy - BOX_HALF)
        gap = max(gap, abs(tc * py - ts * px) - abs(ts) * hx - abs(tc) * hy - BOX_HALF)
        if gap < slack:
            return False
    return True


@jit_helper
def _write_sensors(at: np.ndarray, velocity: np.ndarray, reading: np.ndarray) -> None:
    """Accelerometer, velocimeter, gyro, magnetometer, angular velocity and quaternion of the ball; no contacts."""
    r = ROTATION
    reading[:] = 0.0
    reading[0], reading[1], reading[2] = into_frame(at, r, at[U], at[U + 1], at[U + 2] + GRAVITY)
    reading[3], reading[4], reading[5] = into_frame(at, r, at[LINEAR], at[LINEAR + 1], at[LINEAR + 2])
    reading[6], reading[7], reading[8] = into_frame(at, r, at[ANGULAR], at[ANGULAR + 1], at[ANGULAR + 2])
    for k in range(3):
        reading[9 + k] = MAGNETIC * at[r + 3 + k]
        reading[12 + k] = velocity[8 + k]
    for k in range(4):
        reading[15 + k] = at[BALL_QUAT + k]
