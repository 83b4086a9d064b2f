"""Compiled dynamics of robots in the plane: HalfCheetah, Hopper and Walker2d.

Such a robot is a torso that moves along x and z and turns about y, and bodies on hinges about y, each body on one
hinge. The coordinates are MuJoCo's: x, z, the torso's angle, the hinges' angles. A body has the number of its hinge's
coordinate (the torso 2), and all positions are (x, z) in world axes. Its physics are MuJoCo's, with the contact model
of `planar_contact.py` solved to the end, so the two differ by rounding and by the solver's tolerance.

A robot is left to MuJoCo for a step in which it may touch itself, leaves the numbers that MuJoCo takes for sane, or
the solver does not arrive. Which of the two it is depends on the robot's own state alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from flashbulb.envs.planar_contact import (
    BODY,
    CONTACT_MEMORY,
    ENDS,
    FORCE,
    FRICTION,
    HESSIAN,
    LIMIT_D,
    LIMIT_REFERENCE,
    LIMIT_SIDE,
    MASS,
    NORMAL,
    REFERENCE_N,
    REFERENCE_T,
    TANGENT,
    WIDTH,
    D,
    U,
    factorise,
    multiply,
    solve_factorised,
    solve_planar_contacts,
)
from flashbulb.jit import jit, jit_helper

# The array of a robot, continued. Constants of each coordinate: direction of its axis along y; from the hinge before to
# this one, in the axes of the body before; from the hinge to the centre of mass, in the body's own axes; mass, moment
# of inertia about the hinge; spring, damping, armature, gear of the motor; limits, and 1 / D of a limit times
# d / (1 - d).
(
    SIGN,
    OFFSET_X,
    OFFSET_Z,
    CENTRE_X,
    CENTRE_Z,
    OWN_MASS,
    OWN_INERTIA,
    STIFFNESS,
    DAMPING,
    ARMATURE,
    GEAR,
    LOWER,
    UPPER,
    LIMIT_WEIGHT,
) = (CONTACT_MEMORY + k * WIDTH for k in range(14))
# State, and what follows from it: cosine, sine, position of the hinge, angle and rate of a body; its acceleration by
# rates alone; mass, first and second moment about the hinge, force and torque of it and all that hangs on it.
(
    Q,
    V,
    COS,
    SIN,
    HINGE_X,
    HINGE_Z,
    ANGLE,
    RATE,
    FREE_X,
    FREE_Z,
    ALL_MASS,
    FIRST_X,
    FIRST_Z,
    SECOND,
    PULL_X,
    PULL_Z,
    TORQUE,
) = (CONTACT_MEMORY + (14 + k) * WIDTH for k in range(17))
# Runge-Kutta: state at the beginning, and sums of rates and accelerations; the control of each coordinate
START_Q, START_V, SUM_V, SUM_A, CONTROL = (CONTACT_MEMORY + (31 + k) * WIDTH for k in range(5))
# Constants of each end of a capsule: body, place relative to the hinge, radius, friction, 1 / D times d / (1 - d)
END_BODY, END_X, END_Z, END_RADIUS, END_FRICTION, END_WEIGHT = (
    CONTACT_MEMORY + 36 * WIDTH + k * ENDS for k in range(6)
)
# Impedance and reference of contacts and of limits: the softest and the stiffest d, width, b, k
SOFT, STIFF, RANGE, B, K = 0, 1, 2, 3, 4
FLOOR = CONTACT_MEMORY + 36 * WIDTH + 6 * ENDS
LIMIT = FLOOR + 5
MARGIN, STEP, GRAVITY = (LIMIT + 5 + k for k in range(3))
PLANAR_MEMORY = GRAVITY + 1
SANE = 1e9  # MuJoCo restarts a robot with numbers above 1e10


class Planar(NamedTuple):
    """A robot for compiled code: its array, which is also the memory of a step, and its shape."""

    at: np.ndarray
    tree: np.ndarray  # (coordinates,)
    ends: int  # of capsules
    pairs: np.ndarray  # (n, 2): capsules, as numbers of their first ends, that can touch each other
    runge_kutta: bool


def new_planar(model: mujoco.MjModel) -> Planar:
    """The robot of this model."""
    at, nv, body = np.zeros(PLANAR_MEMORY), model.nv, model.jnt_bodyid
    tree = np.arange(-1, nv - 1)
    hinge = {int(body[i]): i for i in range(2, nv)}
    for i in range(2, nv):
        b, parent = int(body[i]), int(model.body_parentid[body[i]])
        tree[i] = hinge.get(parent, 1)
        before = model.jnt_pos[tree[i]] if i > 2 else np.zeros(3)
        offset = model.body_pos[b] + model.jnt_pos[i] - before
        if i == 2:
            offset = offset - [model.qpos0[0], 0, model.qpos0[1]]
        centre, mass = model.body_ipos[b] - model.jnt_pos[i], model.body_mass[b]
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.body_iquat[b])
        inertia = axes.reshape(3, 3)[1] ** 2 @ model.body_inertia[b] + mass * (centre @ centre)
        numbers = {SIGN: model.jnt_axis[i, 1], OFFSET_X: offset[0], OFFSET_Z: offset[2], CENTRE_X: centre[0]}
        numbers |= {CENTRE_Z: centre[2], OWN_MASS: mass, OWN_INERTIA: inertia}
        for block, number in numbers.items():
            at[block + i] = number
    at[STIFFNESS : STIFFNESS + nv], at[DAMPING : DAMPING + nv] = model.jnt_stiffness, model.dof_damping
    at[ARMATURE : ARMATURE + nv] = model.dof_armature
    at[GEAR + model.actuator_trnid[:, 0]] = model.actuator_gear[:, 0]
    limited = model.jnt_limited.astype(bool)
    at[LOWER : LOWER + nv] = np.where(limited, model.jnt_range[:, 0], -np.inf)
    at[UPPER : UPPER + nv] = np.where(limited, model.jnt_range[:, 1], np.inf)
    at[LIMIT_WEIGHT : LIMIT_WEIGHT + nv] = model.dof_invweight0
    capsules = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE)
    floor = int(np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)[0])
    for k, geom in enumerate(capsules):
        b = int(model.geom_bodyid[geom])
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
        friction = max(model.geom_friction[floor, 0], model.geom_friction[geom, 0])
        for end in (2 * k, 2 * k + 1):
            side = model.geom_size[geom, 1] * (1 if end % 2 else -1)
            place = model.geom_pos[geom] + side * axes.reshape(3, 3)[:, 2] - model.jnt_pos[hinge[b]]
            at[END_BODY + end], at[END_X + end], at[END_Z + end] = hinge[b], place[0], place[2]
            at[END_RADIUS + end], at[END_FRICTION + end] = model.geom_size[geom, 0], friction
            # 1 / D = 2 mu^2 (1 - d) / d (1 + mu^2) w for all rows of a pyramid
            at[END_WEIGHT + end] = 2 * friction**2 * (1 + friction**2) * model.body_invweight0[b, 0]
    h = model.opt.timestep
    at[FLOOR : FLOOR + 5] = _impedance(model.geom_solimp[capsules[0]], model.geom_solref[capsules[0]], h)
    at[LIMIT : LIMIT + 5] = _impedance(model.jnt_solimp[nv - 1], model.jnt_solref[nv - 1], h)
    at[MARGIN] = model.geom_margin[capsules[0]] + model.geom_margin[floor]
    at[STEP], at[GRAVITY] = h, -model.opt.gravity[2]
    at[COS + 1] = 1.0  # coordinate 1 stands for a body that does not turn, on which the torso hangs
    runge_kutta = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    return Planar(at, tree, 2 * len(capsules), _touching_pairs(model, capsules), runge_kutta)


def _impedance(solimp: np.ndarray, solref: np.ndarray, h: float) -> tuple[float, ...]:
    soft, stiff = np.clip(solimp[:2], 0.0001, 0.9999)
    time_constant = max(solref[0], 2 * h)
    return soft, stiff, solimp[2], 2 / (stiff * time_constant), 1 / (stiff * time_constant * solref[1]) ** 2


def _touching_pairs(model: mujoco.MjModel, capsules: np.ndarray) -> np.ndarray:
    """Capsules of bodies that MuJoCo lets collide: not the same body, nor one that hangs on the other."""
    pairs = []
    for k, a in enumerate(capsules):
        for m, b in enumerate(capsules[:k]):
            one, other = model.geom_bodyid[a], model.geom_bodyid[b]
            near = one == other or other == model.body_parentid[one] or one == model.body_parentid[other]
            affine = (
                model.geom_contype[a] & model.geom_conaffinity[b] or model.geom_contype[b] & model.geom_conaffinity[a]
            )
            if affine and not near:
                pairs.append((2 * k, 2 * m))
    return np.array(pairs, np.int64).reshape(-1, 2)


@jit_helper
def _place_bodies(at: np.ndarray, tree: np.ndarray) -> None:
    """Positions, angles and rates of the bodies at the state, and their accelerations by rates alone."""
    at[HINGE_X + 1], at[HINGE_Z + 1] = at[Q], at[Q + 1]
    for i in range(2, len(tree)):
        p = tree[i]
        c, s, x, z = at[COS + p], at[SIN + p], at[OFFSET_X + i], at[OFFSET_Z + i]
        dx, dz, square = c * x + s * z, c * z - s * x, at[RATE + p] * at[RATE + p]
        at[HINGE_X + i], at[HINGE_Z + i] = at[HINGE_X + p] + dx, at[HINGE_Z + p] + dz
        at[FREE_X + i], at[FREE_Z + i] = at[FREE_X + p] - square * dx, at[FREE_Z + p] - square * dz
        at[ANGLE + i] = at[ANGLE + p] + at[SIGN + i] * at[Q + i]
        at[RATE + i] = at[RATE + p] + at[SIGN + i] * at[V + i]
        at[COS + i], at[SIN + i] = math.cos(at[ANGLE + i]), math.sin(at[ANGLE + i])


@jit_helper
def _find_forces(at: np.ndarray, tree: np.ndarray) -> None:
    """Mass matrix M and forces f at the state, without contacts."""
    for i in range(2, len(tree)):
        m, c, s = at[OWN_MASS + i], at[COS + i], at[SIN + i]
        x, z = m * at[CENTRE_X + i], m * at[CENTRE_Z + i]
        x, z = c * x + s * z, c * z - s * x
        ax, az, square = at[FREE_X + i], at[FREE_Z + i] + at[GRAVITY], at[RATE + i] * at[RATE + i]
        at[ALL_MASS + i], at[SECOND + i], at[FIRST_X + i], at[FIRST_Z + i] = m, at[OWN_INERTIA + i], x, z
        at[PULL_X + i], at[PULL_Z + i] = m * ax - square * x, m * az - square * z
        at[TORQUE + i] = z * ax - x * az
    for i in range(len(tree) - 1, 2, -1):
        p = tree[i]
        dx, dz, m = at[HINGE_X + i] - at[HINGE_X + p], at[HINGE_Z + i] - at[HINGE_Z + p], at[ALL_MASS + i]
        x, z = at[FIRST_X + i], at[FIRST_Z + i]
        at[ALL_MASS + p] += m
        at[SECOND + p] += at[SECOND + i] + 2 * (dx * x + dz * z) + m * (dx * dx + dz * dz)
        at[FIRST_X + p] += x + m * dx
        at[FIRST_Z + p] += z + m * dz
        at[PULL_X + p] += at[PULL_X + i]
        at[PULL_Z + p] += at[PULL_Z + i]
        at[TORQUE + p] += at[TORQUE + i] + dz * at[PULL_X + i] - dx * at[PULL_Z + i]
    at[MASS] = at[MASS + WIDTH + 1] = at[ALL_MASS + 2]
    at[FORCE], at[FORCE + 1] = -at[PULL_X + 2], -at[PULL_Z + 2]
    for i in range(2, len(tree)):
        row, sign, x, z = MASS + WIDTH * i, at[SIGN + i], at[FIRST_X + i], at[FIRST_Z + i]
        at[row], at[row + 1], at[row + i] = sign * z, -sign * x, at[SECOND + i] + at[ARMATURE + i]
        j = tree[i]
        while j >= 2:
            dx, dz = at[HINGE_X + i] - at[HINGE_X + j], at[HINGE_Z + i] - at[HINGE_Z + j]
            at[row + j] = sign * at[SIGN + j] * (at[SECOND + i] + dx * x + dz * z)
            j = tree[j]
        passive = at[STIFFNESS + i] * at[Q + i] + at[DAMPING + i] * at[V + i]
        at[FORCE + i] = at[GEAR + i] * at[CONTROL + i] - passive - sign * at[TORQUE + i]


@jit_helper
def _impede(at: np.ndarray, kind: int, distance: float) -> float:
    """The impedance d of a contact or limit so far beyond its margin."""
    x = -distance / at[kind + RANGE]
    y = 1.0 if x >= 1.0 else 2 * x * x if x <= 0.5 else 1 - 2 * (1 - x) * (1 - x)
    return at[kind + SOFT] + y * (at[kind + STIFF] - at[kind + SOFT])


@jit_helper
def _find_limits(at: np.ndarray, tree: np.ndarray) -> None:
    """Fill the rows of joints beyond their limits."""
    for i in range(3, len(tree)):
        below, above = at[Q + i] - at[LOWER + i], at[UPPER + i] - at[Q + i]
        side, distance = (1.0, below) if below < 0.0 else (-1.0, above)
        at[LIMIT_SIDE + i] = at[LIMIT_REFERENCE + i] = 0.0
        if distance < 0.0:
            d = _impede(at, LIMIT, distance)
            at[LIMIT_SIDE + i], at[LIMIT_D + i] = side, d / ((1 - d) * at[LIMIT_WEIGHT + i])
            at[LIMIT_REFERENCE + i] = -at[LIMIT + B] * side * at[V + i] - at[LIMIT + K] * d * distance


@jit_helper
def _find_contacts(at: np.ndarray, tree: np.ndarray, ends: int) -> int:
    """Fill the contacts of capsules' ends with the floor; returns their number."""
    count = 0
    for end in range(ends):
        i = int(at[END_BODY + end])
        c, s, x, z = at[COS + i], at[SIN + i], at[END_X + end], at[END_Z + end]
        height = at[HINGE_Z + i] + c * z - s * x - at[END_RADIUS + end]
        distance = height - at[MARGIN]
        if distance < 0.0:
            px, pz = at[HINGE_X + i] + c * x + s * z, 0.5 * height  # in the middle between floor and capsule
            d = _impede(at, FLOOR, distance)
            at[BODY + count], at[FRICTION + count] = i, at[END_FRICTION + end]
            at[D + count] = d / ((1 - d) * at[END_WEIGHT + end])
            normal, tangent = NORMAL + WIDTH * count, TANGENT + WIDTH * count
            at[normal], at[normal + 1], at[tangent], at[tangent + 1] = 0.0, 1.0, 1.0, 0.0
            vn, vt = at[V + 1], at[V]
            while i >= 2:
                a, b = at[SIGN + i] * (at[HINGE_X + i] - px), at[SIGN + i] * (pz - at[HINGE_Z + i])
                at[normal + i], at[tangent + i] = a, b
                vn += a * at[V + i]
                vt += b * at[V + i]
                i = tree[i]
            at[REFERENCE_N + count] = -at[FLOOR + B] * vn - at[FLOOR + K] * d * distance
            at[REFERENCE_T + count] = -at[FLOOR + B] * vt
            count += 1
    return count


@jit_helper
def _end(at: np.ndarray, end: int) -> tuple[float, float]:
    """Where the centre of a capsule's end is."""
    i = int(at[END_BODY + end])
    c, s, x, z = at[COS + i], at[SIN + i], at[END_X + end], at[END_Z + end]
    return at[HINGE_X + i] + c * x + s * z, at[HINGE_Z + i] + c * z - s * x


@jit_helper
def _from_line(px: float, pz: float, ax: float, az: float, bx: float, bz: float) -> float:
    """Square of the distance of p from the line between a and b."""
    dx, dz = bx - ax, bz - az
    t = min(max(((px - ax) * dx + (pz - az) * dz) / (dx * dx + dz * dz), 0.0), 1.0)
    return (px - ax - t * dx) ** 2 + (pz - az - t * dz) ** 2


@jit_helper
def _may_touch_itself(at: np.ndarray, pairs: np.ndarray) -> bool:
    for k in range(len(pairs)):
        one, other = pairs[k, 0], pairs[k, 1]
        ax, az = _end(at, one)
        bx, bz = _end(at, one + 1)
        cx, cz = _end(at, other)
        dx, dz = _end(at, other + 1)
        nearest = min(
            min(_from_line(ax, az, cx, cz, dx, dz), _from_line(bx, bz, cx, cz, dx, dz)),
            min(_from_line(cx, cz, ax, az, bx, bz), _from_line(dx, dz, ax, az, bx, bz)),
        )
        # Lines that cross have ends on both sides of each other.
        left = ((dx - cx) * (az - cz) - (dz - cz) * (ax - cx)) * ((dx - cx) * (bz - cz) - (dz - cz) * (bx - cx))
        right = ((bx - ax) * (cz - az) - (bz - az) * (cx - ax)) * ((bx - ax) * (dz - az) - (bz - az) * (dx - ax))
        reach = at[END_RADIUS + one] + at[END_RADIUS + other] + 2 * at[MARGIN]
        if nearest < reach * reach or (left <= 0.0 and right <= 0.0):
            return True
    return False


@jit_helper
def _accelerate(at: np.ndarray, tree: np.ndarray, ends: int, pairs: np.ndarray) -> bool:
    """Write the accelerations to U, which holds a first guess; false if MuJoCo must compute them."""
    _place_bodies(at, tree)
    if _may_touch_itself(at, pairs):
        return False
    _find_forces(at, tree)
    contacts = _find_contacts(at, tree, ends)
    _find_limits(at, tree)
    return solve_planar_contacts(at, tree, contacts) > 0


@jit_helper
def _euler(at: np.ndarray, tree: np.ndarray) -> None:
    """Semi-implicit, and implicit in the joints' damping: (M + h damping) u' = M u."""
    h = at[STEP]
    for k in range(WIDTH * WIDTH):
        at[HESSIAN + k] = at[MASS + k]
    for i in range(len(tree)):
        at[HESSIAN + WIDTH * i + i] += h * at[DAMPING + i]
    multiply(at, tree, U, FORCE)
    factorise(at, tree)
    solve_factorised(at, tree, FORCE)
    for i in range(len(tree)):
        at[V + i] += h * at[FORCE + i]
        at[Q + i] += h * at[V + i]


@jit_helper
def _next_stage(at: np.ndarray, tree: np.ndarray, stage: int) -> None:
    """After the accelerations of a stage of the classical Runge-Kutta method: the state of the next one, or the end."""
    h = at[STEP]
    share, weight = 0.5 if stage < 2 else 1.0, 1 / 6 if stage in (0, 3) else 1 / 3
    for i in range(len(tree)):
        if stage == 0:
            at[START_Q + i], at[START_V + i], at[SUM_V + i], at[SUM_A + i] = at[Q + i], at[V + i], 0.0, 0.0
        at[SUM_V + i] += weight * at[V + i]
        at[SUM_A + i] += weight * at[U + i]
        if stage < 3:
            at[Q + i], at[V + i] = at[START_Q + i] + h * share * at[V + i], at[START_V + i] + h * share * at[U + i]
        else:
            at[Q + i], at[V + i] = at[START_Q + i] + h * at[SUM_V + i], at[START_V + i] + h * at[SUM_A + i]


@jit
def step_planar(robot: Planar, state: np.ndarray, control: np.ndarray, substeps: int) -> bool:
    """Advance a row of MuJoCo's states (time, positions, velocities); false if MuJoCo must: the row is as it was."""
    at, tree = robot.at, robot.tree
    n = len(tree)
    for i in range(n):
        at[Q + i], at[V + i], at[U + i] = state[1 + i], state[1 + n + i], 0.0
        if i >= 3:
            at[CONTROL + i] = control[i - 3]
    stages = 4 if robot.runge_kutta else 1
    for k in range(stages * substeps):
        if not _accelerate(at, tree, robot.ends, robot.pairs):
            return False
        if robot.runge_kutta:
            _next_stage(at, tree, k % stages)
        else:
            _euler(at, tree)
        for i in range(n):
            if not (abs(at[Q + i]) < SANE and abs(at[V + i]) < SANE and abs(at[U + i]) < SANE):
                return False
    for i in range(n):
        state[1 + i], state[1 + n + i] = at[Q + i], at[V + i]
    for _ in range(substeps):
        state[0] += at[STEP]
    return True
