"""What robots on hinges share whether they move in a plane or in space: joints, limits and places of contact.

Their equations of motion are in `planar_motion.py` and `spatial_motion.py`, their contacts are solved in
`tree_contact.py`. A robot is left to MuJoCo for a step in which it leaves the numbers that MuJoCo takes for sane, or
the solver does not arrive, or, in the plane, it may touch itself. Which of the two it is depends on its state alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import mujoco
import numpy as np

from flashbulb.envs.contact_model import impedance
from flashbulb.envs.velocity.tree_contact import (
    BODY,
    CONTACT_MEMORY,
    ENDS,
    FRICTION,
    LIMIT_D,
    LIMIT_REFERENCE,
    LIMIT_SIDE,
    REFERENCE_N,
    REFERENCE_S,
    REFERENCE_T,
    WIDTH,
    D,
    U,
)
from flashbulb.jit import jit_helper

# The array of a robot, continued. Constants of each coordinate: spring, damping, armature, gear of the motor; limits,
# and 1 / D of a limit times d / (1 - d).
STIFFNESS, DAMPING, ARMATURE, GEAR, LOWER, UPPER, LIMIT_WEIGHT = (CONTACT_MEMORY + k * WIDTH for k in range(7))
# Position, velocity and control; for Runge-Kutta the state at the beginning, and sums of velocities and accelerations.
Q, V, CONTROL, START_Q, START_V, SUM_V, SUM_A = (CONTACT_MEMORY + k * WIDTH for k in range(7, 14))
# Constants of each end of a capsule: its body, radius, friction, 1 / D times d / (1 - d), place relative to the hinge
END_BODY, END_RADIUS, END_FRICTION, END_WEIGHT, END_X, END_Y, END_Z = (
    CONTACT_MEMORY + 14 * WIDTH + k * ENDS for k in range(7)
)
# Impedance and reference of contacts and of limits: the softest and the stiffest d, width, b, k
FLOOR = CONTACT_MEMORY + 14 * WIDTH + 7 * ENDS
LIMIT = FLOOR + 5
SOFT, STIFF, RANGE, B, K = range(5)
MARGIN, STEP, GRAVITY = (LIMIT + 5 + k for k in range(3))
TREE_MEMORY = GRAVITY + 1
SANE = 1e9  # MuJoCo restarts a robot with numbers above 1e10

# The second array of a robot, of whole numbers: counts of coordinates, motors, ends and of what is in REST, and whether
# the integrator is Runge-Kutta's; the tree; the coordinate of each motor; and what the kind of robot adds.
COORDINATES, MOTOR_COUNT, END_COUNT, REST_COUNT, RUNGE_KUTTA = range(5)
TREE = 5
MOTORS = TREE + WIDTH
REST = MOTORS + WIDTH
SHAPE_SIZE = REST + 32


class TreeRobot(NamedTuple):
    """A robot for compiled code: its numbers, which are also the memory of a step, and its shape."""

    at: np.ndarray
    shape: np.ndarray


def new_robot(model: mujoco.MjModel, size: int) -> TreeRobot:
    """A robot with the constants of joints, floor and integrator, for an array of this size; its tree is one chain."""
    at, shape = np.zeros(size), np.zeros(SHAPE_SIZE, np.int64)
    shape[COORDINATES], shape[MOTOR_COUNT] = model.nv, model.nu
    shape[RUNGE_KUTTA] = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    coordinates, limited = model.jnt_dofadr, model.jnt_limited.astype(bool)
    motors = coordinates[model.actuator_trnid[:, 0]]
    shape[TREE : TREE + model.nv], shape[MOTORS : MOTORS + model.nu] = np.arange(-1, model.nv - 1), motors
    at[GEAR + motors], at[STIFFNESS + coordinates] = model.actuator_gear[:, 0], model.jnt_stiffness
    at[DAMPING : DAMPING + model.nv], at[ARMATURE : ARMATURE + model.nv] = model.dof_damping, model.dof_armature
    at[LIMIT_WEIGHT : LIMIT_WEIGHT + model.nv] = model.dof_invweight0
    at[LOWER : LOWER + WIDTH], at[UPPER : UPPER + WIDTH] = -np.inf, np.inf
    at[LOWER + coordinates[limited]], at[UPPER + coordinates[limited]] = model.jnt_range[limited].T
    floor, geom = _floor(model), int(np.flatnonzero(model.geom_bodyid)[0])
    at[FLOOR : FLOOR + 5] = _impedance(model.geom_solimp[geom], model.geom_solref[geom], model.opt.timestep)
    at[LIMIT : LIMIT + 5] = _impedance(model.jnt_solimp[-1], model.jnt_solref[-1], model.opt.timestep)
    at[MARGIN] = model.geom_margin[geom] + model.geom_margin[floor]
    at[STEP], at[GRAVITY] = model.opt.timestep, -model.opt.gravity[2]
    return TreeRobot(at, shape)


def _floor(model: mujoco.MjModel) -> int:
    return int(np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)[0])


def _impedance(solimp: np.ndarray, solref: np.ndarray, h: float) -> tuple[float, ...]:
    soft, stiff = np.clip(solimp[:2], 0.0001, 0.9999)
    time_constant = max(solref[0], 2 * h)
    return soft, stiff, solimp[2], 2 / (stiff * time_constant), 1 / (stiff * time_constant * solref[1]) ** 2


def fill_ends(robot: TreeRobot, model: mujoco.MjModel) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Write radius, friction and weight of each end of a capsule and of each sphere; yields its number, its body, its
    place in the body's axes and the direction of the capsule (0 for a sphere)."""
    at, end, floor = robot.at, 0, _floor(model)
    for geom in np.flatnonzero(model.geom_bodyid):
        body, axes = int(model.geom_bodyid[geom]), np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
        sphere = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE
        along = np.zeros(3) if sphere else axes.reshape(3, 3)[:, 2]
        mu = max(model.geom_friction[floor, 0], model.geom_friction[geom, 0])
        for side in (0,) if sphere else (-1, 1):
            at[END_RADIUS + end], at[END_FRICTION + end] = model.geom_size[geom, 0], mu
            # 1 / D = 2 mu^2 (1 - d) / d (1 + mu^2) w for all rows of a pyramid
            at[END_WEIGHT + end] = 2 * mu**2 * (1 + mu**2) * model.body_invweight0[body, 0]
            yield end, body, model.geom_pos[geom] + side * model.geom_size[geom, 1] * along, along
            end += 1
            robot.shape[END_COUNT] = end


def own_inertia(model: mujoco.MjModel, body: int, about: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, mass times centre and inertia of a body about a point, in the body's axes."""
    mass, centre, axes = float(model.body_mass[body]), model.body_ipos[body] - about, np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    turn = axes.reshape(3, 3)
    inertia = turn @ np.diag(model.body_inertia[body]) @ turn.T
    return mass, mass * centre, inertia + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))


@jit_helper
def _impede(at: np.ndarray, kind: int, distance: float) -> float:
    """The impedance d of a contact or limit so far beyond its margin."""
    return impedance(-distance / at[kind + RANGE], at[kind + SOFT], at[kind + STIFF])


@jit_helper
def find_limits(at: np.ndarray, tree: np.ndarray) -> None:
    """Fill the rows of joints beyond their limits."""
    for i in range(len(tree)):
        below, above = at[Q + i] - at[LOWER + i], at[UPPER + i] - at[Q + i]
        side, distance = (1.0, below) if below < 0.0 else (-1.0, above)
        at[LIMIT_SIDE + i] = at[LIMIT_REFERENCE + i] = 0.0
        if distance < 0.0:
            d = _impede(at, LIMIT, distance)
            at[LIMIT_SIDE + i], at[LIMIT_D + i] = side, d / ((1 - d) * at[LIMIT_WEIGHT + i])
            at[LIMIT_REFERENCE + i] = -at[LIMIT + B] * side * at[V + i] - at[LIMIT + K] * d * distance


@jit_helper
def touch_floor(at: np.ndarray, c: int, end: int, distance: float, n: float, t: float, s: float) -> None:
    """Complete contact c, whose rows of J are there: of this end, so far beyond the margin, moving at (n, t, s)."""
    d = _impede(at, FLOOR, distance)
    at[BODY + c], at[FRICTION + c] = at[END_BODY + end], at[END_FRICTION + end]
    at[D + c] = d / ((1 - d) * at[END_WEIGHT + end])
    at[REFERENCE_N + c] = -at[FLOOR + B] * n - at[FLOOR + K] * d * distance
    at[REFERENCE_T + c], at[REFERENCE_S + c] = -at[FLOOR + B] * t, -at[FLOOR + B] * s


@jit_helper
def is_sane(at: np.ndarray, tree: np.ndarray) -> bool:
    sane = True
    for i in range(len(tree)):
        sane &= abs(at[Q + i]) < SANE and abs(at[V + i]) < SANE and abs(at[U + i]) < SANE
    return sane


@jit_helper
def set_controls(at: np.ndarray, shape: np.ndarray, control: np.ndarray) -> None:
    for k in range(shape[MOTOR_COUNT]):
        at[CONTROL + shape[MOTORS + k]] = control[k]
