"""Compiled dynamics of robots in the plane: HalfCheetah, Hopper and Walker2d.

Such a robot is a torso that moves along x and z and turns about y, and bodies on hinges about y, each body on one
hinge. The coordinates are MuJoCo's: x, z, the torso's angle, the hinges' angles. A body has the number of its hinge's
coordinate (the torso 2), and all positions are (x, z) in world axes. The physics are MuJoCo's, with the contact problem
of `tree_contact.py` solved to the end, so the two differ by rounding and by MuJoCo's tolerance.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.velocity.tree_contact import (
    FORCE,
    HESSIAN,
    MASS,
    NORMAL,
    TANGENT,
    WIDTH,
    U,
    factorise,
    multiply,
    solve_factorised,
    solve_tree_contacts,
    start_hessian,
)
from flashbulb.envs.velocity.tree_robot import (
    ARMATURE,
    CONTROL,
    COORDINATES,
    DAMPING,
    END_BODY,
    END_COUNT,
    END_RADIUS,
    END_X,
    END_Z,
    GEAR,
    GRAVITY,
    MARGIN,
    REST,
    REST_COUNT,
    RUNGE_KUTTA,
    START_Q,
    START_V,
    STEP,
    STIFFNESS,
    SUM_A,
    SUM_V,
    TREE,
    TREE_MEMORY,
    Q,
    TreeRobot,
    V,
    fill_ends,
    find_limits,
    is_sane,
    new_robot,
    own_inertia,
    set_controls,
    touch_floor,
)
from flashbulb.jit import jit_helper

# The array of a robot, continued. Constants of each body: direction of its hinge's axis along y; from the hinge before
# to its own, in the axes of the body before; mass times centre relative to the hinge, in its own axes; mass, and moment
# of inertia about the hinge.
SIGN, OFFSET_X, OFFSET_Z, CENTRE_X, CENTRE_Z, OWN_MASS, OWN_INERTIA = (TREE_MEMORY + k * WIDTH for k in range(7))
# What follows from the state: angle, its cosine and sine, position of the hinge, rate, acceleration by rates alone;
ANGLE, COS, SIN, HINGE_X, HINGE_Z, RATE, FREE_X, FREE_Z = (TREE_MEMORY + k * WIDTH for k in range(7, 15))
# and of a body with all that hangs on it: mass, first and second moment about the hinge, force and torque.
ALL_MASS, FIRST_X, FIRST_Z, SECOND, PULL_X, PULL_Z, TORQUE = (TREE_MEMORY + k * WIDTH for k in range(15, 22))
PLANAR_MEMORY = TREE_MEMORY + 22 * WIDTH


def new_planar(model: mujoco.MjModel) -> TreeRobot:
    """The robot of this model; REST are pairs of capsules, by their first ends, that can touch each other."""
    robot = new_robot(model, PLANAR_MEMORY)
    at, tree = robot.at, robot.shape[TREE:]
    hinge = {int(model.jnt_bodyid[i]): i for i in range(2, model.nv)}
    for body, i in hinge.items():
        tree[i] = hinge.get(int(model.body_parentid[body]), 1)
        offset = model.body_pos[body] + model.jnt_pos[i]
        offset = offset - (model.jnt_pos[tree[i]] if i > 2 else [model.qpos0[0], 0, model.qpos0[1]])
        mass, centre, inertia = own_inertia(model, body, model.jnt_pos[i])
        at[SIGN + i], at[OFFSET_X + i], at[OFFSET_Z + i] = model.jnt_axis[i, 1], offset[0], offset[2]
        at[CENTRE_X + i], at[CENTRE_Z + i] = centre[0], centre[2]
        at[OWN_MASS + i], at[OWN_INERTIA + i] = mass, inertia[1, 1]
    for end, body, place, _ in fill_ends(robot, model):
        place = place - model.jnt_pos[hinge[body]]
        at[END_BODY + end], at[END_X + end], at[END_Z + end] = hinge[body], place[0], place[2]
    at[COS + 1] = 1.0  # coordinate 1 stands for a body that does not turn, on which the torso hangs
    pairs = _touching_pairs(model)
    robot.shape[REST_COUNT] = len(pairs)
    robot.shape[REST : REST + len(pairs)] = pairs
    return robot


def _touching_pairs(model: mujoco.MjModel) -> list[int]:
    """Capsules of bodies that MuJoCo lets collide: not the same body, nor one that hangs on the other."""
    pairs: list[int] = []
    capsules = np.flatnonzero(model.geom_bodyid)
    for k, a in enumerate(capsules):
        for m, b in enumerate(capsules[:k]):
            one, other = model.geom_bodyid[a], model.geom_bodyid[b]
            near = one == other or other == model.body_parentid[one] or one == model.body_parentid[other]
            affine = (
                model.geom_contype[a] & model.geom_conaffinity[b] or model.geom_contype[b] & model.geom_conaffinity[a]
            )
            if affine and not near:
                pairs += [2 * k, 2 * m]
    return pairs


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
        x, z = at[CENTRE_X + i], at[CENTRE_Z + i]
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
            normal, tangent = NORMAL + WIDTH * count, TANGENT + WIDTH * count  # nothing moves along the other slide
            at[normal], at[normal + 1], at[tangent], at[tangent + 1] = 0.0, 1.0, 1.0, 0.0
            n, t = at[V + 1], at[V]
            while i >= 2:
                a, b = at[SIGN + i] * (at[HINGE_X + i] - px), at[SIGN + i] * (pz - at[HINGE_Z + i])
                at[normal + i], at[tangent + i] = a, b
                n += a * at[V + i]
                t += b * at[V + i]
                i = tree[i]
            touch_floor(at, count, end, distance, n, t, 0.0)
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
def _may_touch_itself(at: np.ndarray, shape: np.ndarray) -> bool:
    for k in range(REST, REST + shape[REST_COUNT], 2):
        one, other = shape[k], shape[k + 1]
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
def _euler(at: np.ndarray, tree: np.ndarray) -> None:
    """Semi-implicit, and implicit in the joints' damping: (M + h damping) u' = M u."""
    h = at[STEP]
    start_hessian(at, tree)
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


@jit_helper
def step_planar(
    at: np.ndarray, shape: np.ndarray, state: np.ndarray, control: np.ndarray, substeps: int, readings: np.ndarray
) -> bool:
    """Advance a row of MuJoCo's states (time, positions, velocities); false if MuJoCo must: the row is as it was."""
    n, stages = shape[COORDINATES], 4 if shape[RUNGE_KUTTA] else 1
    tree = shape[TREE : TREE + n]
    for i in range(n):
        at[Q + i], at[V + i], at[U + i] = state[1 + i], state[1 + n + i], 0.0
    set_controls(at, shape, control)
    for k in range(stages * substeps):
        _place_bodies(at, tree)
        if _may_touch_itself(at, shape):
            return False
        _find_forces(at, tree)
        find_limits(at, tree)
        if solve_tree_contacts(at, tree, _find_contacts(at, tree, shape[END_COUNT])) < 0:
            return False
        if stages > 1:
            _next_stage(at, tree, k % stages)
        else:
            _euler(at, tree)
        if not is_sane(at, tree):
            return False
    for i in range(n):
        state[1 + i], state[1 + n + i] = at[Q + i], at[V + i]
    for _ in range(substeps):
        state[0] += at[STEP]
    return True
