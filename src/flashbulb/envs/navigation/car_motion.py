"""The equations of the Car on the floor: a box on two driven wheels and a ball, as MuJoCo computes them.

Wheels and ball are symmetric about their joints. So in the robot's frame its mass matrix is constant, and the angles of
the joints act on nothing.

The unknowns and contacts are those of `car_contact.py`; vectors are in world axes.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.contact_model import impedance
from flashbulb.envs.navigation.car_contact import (
    ALPHA,
    AXES,
    AXLE,
    BALL,
    BALL_INERTIA,
    CONTACT,
    CONTACT_MEMORY,
    CONTACT_SIZE,
    DIRECTION,
    FIRST,
    FORCE,
    HINGES,
    INERTIA,
    LEVER,
    MASS,
    POINT,
    REFERENCE,
    SIGMA,
    WHEEL,
    A,
    D,
    U,
    contact_rates,
    solve_contacts,
)
from flashbulb.envs.rotations import into_frame, make_rotation, normalise, out_of_frame, turn, turn_symmetric
from flashbulb.jit import jit_helper

GRAVITY = 9.81
RADIUS = 0.05  # of wheels and ball
WHEEL_X, WHEEL_HALF = 0.13, 0.025  # middle of a wheel, and half its width
WHEEL_Y, BALL_Y, CENTRES_Z = 0.1, -0.1, -0.05
DAMPING, MOTOR_LIMIT = 0.001, 0.02
# MuJoCo's contact parameters (solref 0.02 1, solimp 0.9 0.95 0.001 0.5 2): a contact of depth r and speed v is pulled
# to the acceleration -b v - k d(r) r, where the impedance d grows from 0.9 to 0.95 within a millimetre.
SOFT, STIFF, WIDTH, TIME_CONSTANT = 0.9, 0.95, 0.001, 0.02
CONTACT_B = 2 / (STIFF * TIME_CONSTANT)
CONTACT_K = 1 / (STIFF * TIME_CONSTANT) ** 2
UNCERTAIN = 1e-11  # a distance at which rounding may decide whether there is a contact

# The array of a Car, continued: pose and rates. The robot's angular velocity is in world axes, and the ball's, relative
# to the robot, in the robot's axes: neither changes when the body turns about it.
POS, QUAT, HINGE_ANGLES, BALL_QUAT, LINEAR, ANGULAR, HINGE_RATES, BETA = (
    CONTACT_MEMORY + k for k in (0, 3, 7, 9, 13, 16, 19, 21)
)
ROTATION, BALL_ROTATION = BETA + 3, BETA + 12  # 3 x 3; of the robot in the world, of the ball in the robot
# Constants in the robot's frame, as FIRST and INERTIA are in world axes; the acceleration of the robot (6) per torque
# (3), with the joints' damping in a substep; D (1 - d) / d of a contact of a wheel, of the ball; seconds of a substep.
OWN_FIRST, OWN_INERTIA, DAMPED, OWN_STIFFNESS, STEP = (BALL_ROTATION + k for k in (9, 12, 18, 36, 38))
CAR_MEMORY = STEP + 1


def new_car(model: mujoco.MjModel) -> np.ndarray:
    """The array of a Car with all constants, which follow from the mass matrix at the initial pose."""
    data, matrix, at = mujoco.MjData(model), np.zeros((model.nv, model.nv)), np.zeros(CAR_MEMORY)
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, matrix)
    wheel, ball, h = matrix[6, 6], matrix[8, 8], model.opt.timestep
    at[MASS], at[WHEEL], at[BALL_INERTIA], at[STEP] = matrix[0, 0], wheel, ball, h
    base = matrix[:6, :6].copy()
    base[3:, 3:] -= ball * np.eye(3)
    at[OWN_FIRST : OWN_FIRST + 3] = base[5, 1], base[3, 2], base[4, 0]
    at[OWN_INERTIA : OWN_INERTIA + 6] = base[[3, 4, 5, 3, 3, 4], [3, 4, 5, 4, 5, 5]]
    # 1 / D = 2 mu^2 (1 - d) / d (1 + mu^2) w for all rows of a pyramid with slide friction mu = 1
    weights = [model.body_invweight0[model.body(name).id, 0] for name in ("left", "rear")]
    at[OWN_STIFFNESS : OWN_STIFFNESS + 2] = 1 / (4 * np.array(weights))
    # M + h D with the joints eliminated, see `move_car`
    base[3, 3] -= 2 * wheel**2 / (wheel + h * DAMPING)
    base[3:, 3:] += _kappa(ball, h) * np.eye(3)
    at[DAMPED : DAMPED + 18] = np.linalg.inv(base)[:, 3:].ravel()
    return at


@jit_helper
def _kappa(inertia: float, h: float) -> float:
    """The torque that a damped joint takes up in a substep, per difference of angular accelerations."""
    return h * DAMPING * inertia / (h * DAMPING + inertia)


@jit_helper
def _turn_inertia(at: np.ndarray) -> None:
    """From the robot's frame into world axes: FIRST, INERTIA = R I R', and the axle, which is the robot's x."""
    r = ROTATION
    at[FIRST], at[FIRST + 1], at[FIRST + 2] = out_of_frame(at, r, at[OWN_FIRST], at[OWN_FIRST + 1], at[OWN_FIRST + 2])
    at[AXLE], at[AXLE + 1], at[AXLE + 2] = at[r], at[r + 3], at[r + 6]
    turn_symmetric(at, r, OWN_INERTIA, INERTIA)


@jit_helper
def _touch(at: np.ndarray, c: int, distance: float, px: float, py: float, pz: float) -> None:
    """Enter contact c, whose lever is there already; the velocities are in DIRECTION."""
    p = CONTACT + c * CONTACT_SIZE
    at[p + POINT], at[p + POINT + 1], at[p + POINT + 2] = px, py, pz
    d = impedance(-distance / WIDTH, SOFT, STIFF)
    at[p + D] = at[OWN_STIFFNESS + c // BALL] * d / (1 - d)
    contact_rates(at, c, DIRECTION, p + REFERENCE)
    for k in range(AXES):
        at[p + REFERENCE + k] *= CONTACT_B
    at[p + REFERENCE] += CONTACT_K * d * distance


@jit_helper
def _find_contacts(at: np.ndarray) -> bool:
    """Fill the contacts with the floor; false if rounding may decide which there are."""
    ex, ey, ez = at[AXLE], at[AXLE + 1], at[AXLE + 2]
    # from the axle to the lowest line of a wheel: radius times (e_z e - z) / |e_z e - z|
    level = math.sqrt(1 - ez * ez)
    dx, dy, dz = RADIUS / level * ez * ex, RADIUS / level * ez * ey, -RADIUS * level
    certain = True
    for c in range(BALL):
        side, end = WHEEL_X if c >= 2 else -WHEEL_X, WHEEL_HALF if c % 2 else -WHEEL_HALF
        px, py, pz = out_of_frame(at, ROTATION, side + end, WHEEL_Y, CENTRES_Z)
        distance = at[POS + 2] + pz + dz
        certain &= abs(distance) > UNCERTAIN
        p = CONTACT + c * CONTACT_SIZE
        at[p + D] = 0.0
        if distance <= 0.0:
            z = dz - 0.5 * distance  # the point is in the middle between floor and wheel
            at[p + LEVER], at[p + LEVER + 1], at[p + LEVER + 2] = ey * z - ez * dy, ez * dx - ex * z, ex * dy - ey * dx
            _touch(at, c, distance, px + dx, py + dy, pz + z)
    px, py, pz = out_of_frame(at, ROTATION, 0.0, BALL_Y, CENTRES_Z)
    distance = at[POS + 2] + pz - RADIUS
    certain &= abs(distance) > UNCERTAIN
    p = CONTACT + BALL * CONTACT_SIZE
    at[p + D] = 0.0
    if distance <= 0.0:
        at[p + LEVER] = RADIUS + 0.5 * distance
        _touch(at, BALL, distance, px, py, pz)
    return certain


@jit_helper
def accelerate(at: np.ndarray, left_motor: float, right_motor: float) -> bool:
    """Write the accelerations to U, which holds a first guess; false if MuJoCo must compute them."""
    make_rotation(at, QUAT, ROTATION)
    _turn_inertia(at)
    wx, wy, wz = at[ANGULAR], at[ANGULAR + 1], at[ANGULAR + 2]
    left, right = at[HINGE_RATES], at[HINGE_RATES + 1]
    bx, by, bz = out_of_frame(at, ROTATION, at[BETA], at[BETA + 1], at[BETA + 2])
    v, f = DIRECTION, FORCE  # velocities in the order of the unknowns
    for k in range(3):
        at[v + A + k], at[v + ALPHA + k] = at[LINEAR + k], at[ANGULAR + k]
    at[v + HINGES], at[v + HINGES + 1] = left, right
    at[v + SIGMA], at[v + SIGMA + 1], at[v + SIGMA + 2] = wx + bx, wy + by, wz + bz
    if not _find_contacts(at):
        return False
    # Centrifugal force -w x (w x h) with h = mass times centre of mass, and weight
    h0, h1, h2 = at[FIRST], at[FIRST + 1], at[FIRST + 2]
    along, square = wx * h0 + wy * h1 + wz * h2, wx * wx + wy * wy + wz * wz
    at[f] = square * h0 - along * wx
    at[f + 1] = square * h1 - along * wy
    at[f + 2] = square * h2 - along * wz - at[MASS] * GRAVITY
    # Gyroscopic torque -w x (I w + spin of the wheels), weight at its lever, and damping of the ball
    i, spin = INERTIA, at[WHEEL] * (left + right)
    lx = at[i] * wx + at[i + 3] * wy + at[i + 4] * wz + spin * at[AXLE]
    ly = at[i + 3] * wx + at[i + 1] * wy + at[i + 5] * wz + spin * at[AXLE + 1]
    lz = at[i + 4] * wx + at[i + 5] * wy + at[i + 2] * wz + spin * at[AXLE + 2]
    at[f + 3] = wz * ly - wy * lz - h1 * GRAVITY + DAMPING * bx
    at[f + 4] = wx * lz - wz * lx + h0 * GRAVITY + DAMPING * by
    at[f + 5] = wy * lx - wx * ly + DAMPING * bz
    at[f + 6], at[f + 7] = left_motor - DAMPING * left, right_motor - DAMPING * right
    # sigma adds up the joints' accelerations, without the change w x beta that follows from the robot's rotation
    ball = at[BALL_INERTIA]
    at[f + 8] = -DAMPING * bx - ball * (wy * bz - wz * by)
    at[f + 9] = -DAMPING * by - ball * (wz * bx - wx * bz)
    at[f + 10] = -DAMPING * bz - ball * (wx * by - wy * bx)
    return solve_contacts(at) > 0


@jit_helper
def move_car(at: np.ndarray) -> None:
    """A substep with the accelerations in U: semi-implicit Euler, implicit in the joints' damping.

    MuJoCo solves (M + h D) u' = M u. With the joints eliminated, the robot's acceleration changes by DAMPED times the
    torque that the joints no longer take up; s' = share (s - e . (alpha' - alpha)), and sigma' - alpha' = share
    (sigma - alpha'), each with the share I / (I + h D) of its joint.
    """
    h, r, torque, change = at[STEP], ROTATION, DIRECTION + 6, DIRECTION
    pull, kappa = _kappa(at[WHEEL], h) * (at[U + HINGES] + at[U + HINGES + 1]), _kappa(at[BALL_INERTIA], h)
    for k in range(3):
        at[torque + k] = pull * at[r + 3 * k] + kappa * (at[U + SIGMA + k] - at[U + ALPHA + k])
    tx, ty, tz = into_frame(at, r, at[torque], at[torque + 1], at[torque + 2])
    for k in range(0, 6, 3):
        x, y, z = out_of_frame(at, DAMPED + 3 * k, tx, ty, tz)
        at[change + k], at[change + k + 1], at[change + k + 2] = out_of_frame(at, r, x, y, z)
    share, along = h * at[WHEEL] / (at[WHEEL] + h * DAMPING), 0.0
    for k in range(3):
        along += at[r + 3 * k] * at[change + ALPHA + k]
    for k in range(2):
        at[HINGE_RATES + k] += share * (at[U + HINGES + k] - along)
        at[HINGE_ANGLES + k] += h * at[HINGE_RATES + k]
    share = h * at[BALL_INERTIA] / (at[BALL_INERTIA] + h * DAMPING)
    for k in range(3):
        alpha = at[U + ALPHA + k] + at[change + ALPHA + k]
        at[torque + k] = share * (at[U + SIGMA + k] - alpha)
        at[ANGULAR + k] += h * alpha
        at[LINEAR + k] += h * (at[U + k] + at[change + k])
        at[POS + k] += h * at[LINEAR + k]
    x, y, z = into_frame(at, r, at[torque], at[torque + 1], at[torque + 2])
    x, y, z = at[BETA] + x, at[BETA + 1] + y, at[BETA + 2] + z
    at[BETA], at[BETA + 1], at[BETA + 2] = x, y, z
    # beta is in the robot's axes, not in the ball's: seen from there the conjugate turns, the other way
    _conjugate(at, BALL_QUAT)
    turn(at, BALL_QUAT, at[STEP], -x, -y, -z)
    _conjugate(at, BALL_QUAT)
    x, y, z = into_frame(at, r, at[ANGULAR], at[ANGULAR + 1], at[ANGULAR + 2])
    turn(at, QUAT, at[STEP], x, y, z)


@jit_helper
def _conjugate(at: np.ndarray, quat: int) -> None:
    for k in range(1, 4):
        at[quat + k] = -at[quat + k]


@jit_helper
def load_car(at: np.ndarray, row: np.ndarray, v: int) -> None:
    """From a row of `TaskState.physics`, velocities from v on. MuJoCo's angular velocities are in the axes of the body
    that turns."""
    for k in range(13):
        at[POS + k] = row[1 + k]
    normalise(at, QUAT)
    normalise(at, BALL_QUAT)
    make_rotation(at, QUAT, ROTATION)
    make_rotation(at, BALL_QUAT, BALL_ROTATION)
    for k in range(11):
        at[LINEAR + k] = row[v + k]
    at[ANGULAR], at[ANGULAR + 1], at[ANGULAR + 2] = out_of_frame(at, ROTATION, row[v + 3], row[v + 4], row[v + 5])
    at[BETA], at[BETA + 1], at[BETA + 2] = out_of_frame(at, BALL_ROTATION, row[v + 8], row[v + 9], row[v + 10])


@jit_helper
def store_car(at: np.ndarray, row: np.ndarray, v: int) -> None:
    """Into a row of `TaskState.physics`."""
    make_rotation(at, QUAT, ROTATION)
    make_rotation(at, BALL_QUAT, BALL_ROTATION)
    for k in range(13):
        row[1 + k] = at[POS + k]
    for k in range(11):
        row[v + k] = at[LINEAR + k]
    row[v + 3], row[v + 4], row[v + 5] = into_frame(at, ROTATION, at[ANGULAR], at[ANGULAR + 1], at[ANGULAR + 2])
    row[v + 8], row[v + 9], row[v + 10] = into_frame(at, BALL_ROTATION, at[BETA], at[BETA + 1], at[BETA + 2])
