"""Closed-form dynamics of the Point robot, used wherever it touches nothing.

Away from contacts the Point obeys the equations of `point_motion.py`, and vases and gremlins are on the paths of
`free_boxes.py`. If both hold during a whole step, a compiled loop moves the environment, to within rounding of what
MuJoCo computes. Every other environment is left to the simulator. Which of the two it is depends on the environment's
own state alone.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numba import types
from numba.experimental import structref

from flashbulb.envs.navigation.free_boxes import BoxPath, box_path, boxes_undisturbed, finish_step, gremlin_sway
from flashbulb.envs.navigation.model import build_model
from flashbulb.envs.navigation.mujoco_physics import MujocoPhysics
from flashbulb.envs.navigation.point_motion import (
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
    clear_of_box,
    clear_of_button,
    inertia_of,
    move,
)
from flashbulb.envs.navigation.task_state import Rules, TaskState, copy
from flashbulb.envs.navigation.tasks import Level
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.jit import jit, jit_inline

GRAVITY, MAGNETIC = 9.81, -0.5
FAR = 0.4  # beyond which the robot can touch neither box nor button

Poses = tuple[np.ndarray, np.ndarray]


class FreeMotion(NamedTuple):
    """The Point's inertia, and the path of the level's free boxes."""

    inertia_damped: Inertia  # with the damping of a substep: M + h D
    inertia: Inertia  # M
    boxes: BoxPath


@structref.register
class _StepContextType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class StepContext(structref.StructRefProxy):
    """The arguments of a step as one object of compiled code: to pass forty arrays and numbers one by one takes longer
    than to move eight Points."""

    state: TaskState
    rules: Rules
    motion: FreeMotion
    poses: Poses
    indices: np.ndarray  # of all environments
    to_simulate: np.ndarray  # buffer for the rows that must be simulated


structref.define_proxy(StepContext, _StepContextType, ["state", "rules", "motion", "poses", "indices", "to_simulate"])


class PointPhysics:
    """Steps Points by their closed form where possible; the rest is left to `simulator`."""

    def __init__(self, level: Level, rules: Rules, state: TaskState, poses: Poses, simulator: MujocoPhysics) -> None:
        self.rules, self.state, self.simulator = rules, state, simulator
        self.motion = free_motion(level, simulator.backend)
        indices = np.arange(len(state.physics))
        self.to_simulate = np.empty_like(indices)
        self.context = make_context(state, rules, self.motion, poses, indices, self.to_simulate)

    def sense(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of these environments at their states, under one action each."""
        count = step_points(self.state, self.rules, self.motion, indices, actions, 0, self.to_simulate)
        if count:
            left = self.to_simulate[:count]
            self.simulator.sense(indices[left], actions[left])

    def close(self) -> None:
        self.simulator.close()


@cache
def free_motion(level: Level, backend: PhysicsBackend) -> FreeMotion:
    """Take the inertia from the mass matrix."""
    model = build_model("Point", level)
    data, mass_matrix = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, mass_matrix)
    mass, lever, moment = mass_matrix[0, 0], mass_matrix[1, 2], mass_matrix[2, 2]
    h = float(model.opt.timestep)
    inertia_damped = inertia_of(mass + h * SLIDE_DAMPING, lever, moment + h * HINGE_DAMPING)
    return FreeMotion(inertia_damped, inertia_of(mass, lever, moment), box_path("Point", level, backend))


@jit
def make_context(
    state: TaskState, rules: Rules, motion: FreeMotion, poses: Poses, indices: np.ndarray, to_simulate: np.ndarray
) -> StepContext:
    return StepContext(state, rules, motion, poses, indices, to_simulate)


@jit
def step_points(
    state: TaskState,
    rules: Rules,
    motion: FreeMotion,
    indices: np.ndarray,
    actions: np.ndarray,
    substeps: int,
    to_simulate: np.ndarray,
) -> int:
    """Move the Points that touch nothing by so many substeps and write their sensors.

    Environments that must be simulated stay unchanged; their positions in `indices` are written to `to_simulate`, and
    their number is returned.
    """
    count = 0
    at, step_path, free = np.empty(QUANTITIES), np.empty((substeps + 1, POSE)), np.empty(LANES, np.bool_)
    for first in range(0, len(indices), LANES):
        lanes = indices[first : first + LANES]
        _load(state, rules, lanes, actions[first:], at)
        copy(at, step_path[0], POSE)
        for k in range(substeps):
            move(at, rules.timestep, motion.inertia_damped)
            copy(at, step_path[k + 1], POSE)
        free[:] = True
        if substeps:
            _keep_undisturbed(state, rules, motion, lanes, free)
        _keep_clear(step_path, state, rules, lanes, free)
        _write(at, state, rules, motion, lanes, free, substeps)
        _write_sensors(at, motion.inertia, lanes, free, state.sensors)
        for j in range(len(lanes)):
            if not free[j]:
                to_simulate[count] = first + j
                count += 1
    return count


# The functions below take all lanes in one call: passing a tuple of arrays counts references of every array.


@jit_inline
def _load(state: TaskState, rules: Rules, lanes: np.ndarray, actions: np.ndarray, at: np.ndarray) -> None:
    """Load environments into the lanes; the last one also into the lanes that are left."""
    for j in range(LANES):
        m = min(j, len(lanes) - 1)
        row = state.physics[lanes[m]]
        at[X + j], at[Y + j], at[YAW + j] = row[1], row[2], row[3]
        at[C + j], at[S + j] = math.cos(row[3]), math.sin(row[3])
        at[U + j], at[V + j], at[W + j] = row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2]
        at[THRUST + j] = GEAR * min(max(actions[m, 0], -FORCE_LIMIT), FORCE_LIMIT)
        at[TURN + j] = actions[m, 1]


@jit_inline
def _keep_undisturbed(state: TaskState, rules: Rules, motion: FreeMotion, lanes: np.ndarray, free: np.ndarray) -> None:
    for j in range(len(lanes)):
        free[j] &= boxes_undisturbed(state.physics[lanes[j]], state.objects[lanes[j]], rules, motion.boxes)


@jit_inline
def _keep_clear(step_path: np.ndarray, state: TaskState, rules: Rules, lanes: np.ndarray, free: np.ndarray) -> None:
    """Clear `free` where the robot may touch a box or a button somewhere on its path."""
    slack = gremlin_sway(rules)
    for j in range(len(lanes)):
        x, y, travel = step_path[0, X + j], step_path[0, Y + j], 0.0
        for k in range(len(step_path) - 1):
            travel += abs(step_path[k + 1, X + j] - step_path[k, X + j]) + abs(
                step_path[k + 1, Y + j] - step_path[k, Y + j]
            )
        for f in range(len(rules.free)):
            body = state.physics[lanes[j], rules.free[f, 1] :]
            if math.hypot(body[0] - x, body[1] - y) < FAR + travel:
                for k in range(len(step_path)):
                    pose = step_path[k, X + j], step_path[k, Y + j], step_path[k, C + j], step_path[k, S + j]
                    free[j] &= clear_of_box(*pose, body, slack)
        for b in range(rules.buttons[0], rules.buttons[1]):
            centre = state.objects[lanes[j], b]
            if math.hypot(centre[0] - x, centre[1] - y) < FAR + travel:
                for k in range(len(step_path)):
                    pose = step_path[k, X + j], step_path[k, Y + j], step_path[k, C + j], step_path[k, S + j]
                    free[j] &= clear_of_button(*pose, centre)


@jit_inline
def _write(
    at: np.ndarray,
    state: TaskState,
    rules: Rules,
    motion: FreeMotion,
    lanes: np.ndarray,
    free: np.ndarray,
    substeps: int,
) -> None:
    """Write the new states of free lanes: of the robot, and of the boxes on their paths."""
    for j in range(len(lanes)):
        if not free[j]:
            continue
        row, objects = state.physics[lanes[j]], state.objects[lanes[j]]
        row[1], row[2], row[3] = at[X + j], at[Y + j], at[YAW + j]
        row[rules.velocity], row[rules.velocity + 1], row[rules.velocity + 2] = at[U + j], at[V + j], at[W + j]
        if substeps:
            finish_step(row, objects, rules, motion.boxes)


@jit_inline
def _write_sensors(at: np.ndarray, body: Inertia, lanes: np.ndarray, free: np.ndarray, sensors: np.ndarray) -> None:
    """Accelerometer, velocimeter, gyro and magnetometer of free lanes; no contacts."""
    for j in range(len(lanes)):
        if not free[j]:
            continue
        reading = sensors[lanes[j]]
        c, s, u, v, w = at[C + j], at[S + j], at[U + j], at[V + j], at[W + j]
        ahead, left, _ = accelerations(c, s, u, v, w, at[THRUST + j], at[TURN + j], body)
        reading[:] = 0.0
        reading[0], reading[1], reading[2] = ahead, left, GRAVITY
        reading[3], reading[4] = c * u + s * v, c * v - s * u
        reading[8] = w
        reading[9], reading[10] = MAGNETIC * s, MAGNETIC * c
