"""Compiled dynamics of a robot that moves freely, with legs on hinges: Ant.

The coordinates are MuJoCo's: position of the torso, its orientation, angles of the hinges. Velocities are those of the
position in world axes, the angular velocity in the torso's axes, rates of the hinges. A link is what moves together:
the torso with the bodies fixed to it, and a body on each hinge. It has the number of its last coordinate (the torso 5).
Vectors are in world axes, relative to the link's origin: the torso's, or a point of the hinge. The physics are
MuJoCo's, with the contact problem of `tree_contact.py` solved to the end, so the two differ by rounding and by MuJoCo's
tolerance.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.tree_contact import FORCE, MASS, NORMAL, SIDE, TANGENT, WIDTH, U, solve_tree_contacts
from flashbulb.envs.tree_robot import (
    ARMATURE,
    CONTROL,
    COORDINATES,
    DAMPING,
    END_BODY,
    END_COUNT,
    END_RADIUS,
    END_X,
    END_Y,
    END_Z,
    ENDS,
    GEAR,
    GRAVITY,
    MARGIN,
    REST,
    REST_COUNT,
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

TORSO, BODIES = 5, 32
# The array of a robot, continued. Vectors and matrices of a link are together, at 3, 6 or 9 times its number. Constants
# in its own axes: from the origin of the link before to its own, in the axes of that one; axis of the hinge; mass times
# centre; inertia about the origin (xx, yy, zz, xy, xz, yz); mass.
OFFSET, OWN_AXIS, CENTRE = (TREE_MEMORY + 3 * k * WIDTH for k in range(3))
OWN_INERTIA, OWN_MASS = TREE_MEMORY + 9 * WIDTH, TREE_MEMORY + 15 * WIDTH
# What follows from the state: rotation, origin, axis, angular velocity; acceleration of the origin and angular
# acceleration by velocities alone;
ROTATION = OWN_MASS + WIDTH
ORIGIN, AXIS, OMEGA, FREE, ALPHA = (ROTATION + (9 + 3 * k) * WIDTH for k in range(5))
# and of a link with all that hangs on it: mass, first moment, inertia, force and torque.
ALL_MASS = ALPHA + 3 * WIDTH
FIRST, PULL, TORQUE = (ALL_MASS + (1 + 3 * k) * WIDTH for k in range(3))
INERTIA = ALL_MASS + 10 * WIDTH
# Orientation of the torso, now and at the beginning of a substep; direction of each capsule in its link's axes
QUAT, START_QUAT = INERTIA + 6 * WIDTH, INERTIA + 6 * WIDTH + 4
ALONG = START_QUAT + 4
PLACES = ALONG + 3 * ENDS  # of MuJoCo's bodies in the axes of their links
SPATIAL_MEMORY = PLACES + 3 * BODIES


def new_spatial(model: mujoco.MjModel) -> TreeRobot:
    """The robot of this model; REST are the links of MuJoCo's bodies."""
    robot = new_robot(model, SPATIAL_MEMORY)
    at, tree, links = robot.at, robot.shape[TREE:], robot.shape[REST : REST + model.nbody]
    links[:], places = TORSO, at[PLACES : PLACES + 3 * model.nbody].reshape(-1, 3)
    robot.shape[REST_COUNT] = model.nbody
    for body in range(1, model.nbody):
        parent, joint = int(model.body_parentid[body]), int(model.body_jntadr[body])
        i, place = int(links[parent]), places[parent] + model.body_pos[body]
        if body == 1:
            place = np.zeros(3)
        elif joint >= 0:
            i = int(model.jnt_dofadr[joint])
            tree[i] = links[parent]
            at[OFFSET + 3 * i : OFFSET + 3 * i + 3] = place + model.jnt_pos[joint]
            at[OWN_AXIS + 3 * i : OWN_AXIS + 3 * i + 3] = model.jnt_axis[joint]
            place = -model.jnt_pos[joint]
        links[body], places[body] = i, place
        mass, centre, inertia = own_inertia(model, body, -place)
        at[OWN_MASS + i] += mass
        at[CENTRE + 3 * i : CENTRE + 3 * i + 3] += centre
        at[OWN_INERTIA + 6 * i : OWN_INERTIA + 6 * i + 6] += inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    for end, body, place, along in fill_ends(robot, model):
        at[END_BODY + end] = links[body]
        at[END_X + end], at[END_Y + end], at[END_Z + end] = places[body] + place
        at[ALONG + 3 * end : ALONG + 3 * end + 3] = along
    return robot


@jit_helper
def _turned(at: np.ndarray, r: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The matrix at offset r times a vector: from a link's axes into the world's."""
    return (
        at[r] * x + at[r + 1] * y + at[r + 2] * z,
        at[r + 3] * x + at[r + 4] * y + at[r + 5] * z,
        at[r + 6] * x + at[r + 7] * y + at[r + 8] * z,
    )


@jit_helper
def _cross(x: float, y: float, z: float, u: float, v: float, w: float) -> tuple[float, float, float]:
    return y * w - z * v, z * u - x * w, x * v - y * u


@jit_helper
def _times_inertia(at: np.ndarray, m: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The symmetric matrix at offset m (xx, yy, zz, xy, xz, yz) times a vector."""
    return (
        at[m] * x + at[m + 3] * y + at[m + 4] * z,
        at[m + 3] * x + at[m + 1] * y + at[m + 5] * z,
        at[m + 4] * x + at[m + 5] * y + at[m + 2] * z,
    )


@jit_helper
def _between(at: np.ndarray, b: int, a: int) -> tuple[float, float, float]:
    """From the origin of one link to that of another; both are three times their numbers."""
    return (
        at[ORIGIN + a] - at[ORIGIN + b],
        at[ORIGIN + a + 1] - at[ORIGIN + b + 1],
        at[ORIGIN + a + 2] - at[ORIGIN + b + 2],
    )


@jit_helper
def _turn_torso(at: np.ndarray) -> None:
    """Rotation matrix and angular velocity of the torso."""
    w, x, y, z = at[QUAT], at[QUAT + 1], at[QUAT + 2], at[QUAT + 3]
    scale, r = 1 / math.sqrt(w * w + x * x + y * y + z * z), ROTATION + 9 * TORSO
    w, x, y, z = w * scale, x * scale, y * scale, z * scale
    at[r], at[r + 1], at[r + 2] = w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)
    at[r + 3], at[r + 4], at[r + 5] = 2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)
    at[r + 6], at[r + 7], at[r + 8] = 2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z
    o = OMEGA + 3 * TORSO
    at[o], at[o + 1], at[o + 2] = _turned(at, r, at[V + 3], at[V + 4], at[V + 5])
    for k in range(3):
        at[ORIGIN + 3 * TORSO + k] = at[Q + k]
        for j in range(3):  # coordinates 3 to 5 turn about the torso's axes
            at[AXIS + 3 * (3 + k) + j] = at[r + 3 * j + k]


@jit_helper
def _turn_link(at: np.ndarray, i: int, p: int) -> None:
    """Rotation matrix of a link on its hinge: that of the link before times the turn about the axis."""
    x, y, z = at[OWN_AXIS + 3 * i], at[OWN_AXIS + 3 * i + 1], at[OWN_AXIS + 3 * i + 2]
    c, s = math.cos(at[Q + i]), math.sin(at[Q + i])
    e, r, before = 1 - c, ROTATION + 9 * i, ROTATION + 9 * p
    # columns of the turn
    xx, xy, xz = c + e * x * x, e * x * y + s * z, e * x * z - s * y
    yx, yy, yz = e * x * y - s * z, c + e * y * y, e * y * z + s * x
    zx, zy, zz = e * x * z + s * y, e * y * z - s * x, c + e * z * z
    at[r], at[r + 3], at[r + 6] = _turned(at, before, xx, xy, xz)
    at[r + 1], at[r + 4], at[r + 7] = _turned(at, before, yx, yy, yz)
    at[r + 2], at[r + 5], at[r + 8] = _turned(at, before, zx, zy, zz)
    a = AXIS + 3 * i
    at[a], at[a + 1], at[a + 2] = _turned(at, before, x, y, z)


@jit_helper
def _place_links(at: np.ndarray, tree: np.ndarray) -> None:
    """Positions, angular velocities, and accelerations by velocities alone."""
    _turn_torso(at)
    for i in range(TORSO + 1, len(tree)):
        p = tree[i]
        _turn_link(at, i, p)
        a, b, o = 3 * i, 3 * p, OFFSET + 3 * i
        dx, dy, dz = _turned(at, ROTATION + 9 * p, at[o], at[o + 1], at[o + 2])
        wx, wy, wz = at[OMEGA + b], at[OMEGA + b + 1], at[OMEGA + b + 2]
        # the origin's acceleration: alpha x d + w x (w x d)
        ax, ay, az = _cross(at[ALPHA + b], at[ALPHA + b + 1], at[ALPHA + b + 2], dx, dy, dz)
        vx, vy, vz = _cross(wx, wy, wz, dx, dy, dz)
        vx, vy, vz = _cross(wx, wy, wz, vx, vy, vz)
        at[ORIGIN + a], at[FREE + a] = at[ORIGIN + b] + dx, at[FREE + b] + ax + vx
        at[ORIGIN + a + 1], at[FREE + a + 1] = at[ORIGIN + b + 1] + dy, at[FREE + b + 1] + ay + vy
        at[ORIGIN + a + 2], at[FREE + a + 2] = at[ORIGIN + b + 2] + dz, at[FREE + b + 2] + az + vz
        rate = at[V + i]
        x, y, z = rate * at[AXIS + a], rate * at[AXIS + a + 1], rate * at[AXIS + a + 2]
        cx, cy, cz = _cross(wx, wy, wz, x, y, z)
        at[OMEGA + a], at[ALPHA + a] = wx + x, at[ALPHA + b] + cx
        at[OMEGA + a + 1], at[ALPHA + a + 1] = wy + y, at[ALPHA + b + 1] + cy
        at[OMEGA + a + 2], at[ALPHA + a + 2] = wz + z, at[ALPHA + b + 2] + cz


@jit_helper
def _weigh_link(at: np.ndarray, i: int) -> None:
    """A link alone: first moment and inertia in world axes; force and torque that its accelerations by velocities
    and its weight ask for."""
    a, r, m, own = 3 * i, ROTATION + 9 * i, INERTIA + 6 * i, OWN_INERTIA + 6 * i
    x, y, z = _turned(at, r, at[CENTRE + a], at[CENTRE + a + 1], at[CENTRE + a + 2])
    at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2] = x, y, z
    mass = at[ALL_MASS + i] = at[OWN_MASS + i]
    for j in range(3):  # R I R'
        tx, ty, tz = _times_inertia(at, own, at[r + 3 * j], at[r + 3 * j + 1], at[r + 3 * j + 2])
        for k in range(j + 1):
            entry = m + (j if j == k else 2 + j + k)
            at[entry] = tx * at[r + 3 * k] + ty * at[r + 3 * k + 1] + tz * at[r + 3 * k + 2]
    wx, wy, wz = at[OMEGA + a], at[OMEGA + a + 1], at[OMEGA + a + 2]
    ex, ey, ez = at[ALPHA + a], at[ALPHA + a + 1], at[ALPHA + a + 2]
    ax, ay, az = at[FREE + a], at[FREE + a + 1], at[FREE + a + 2] + at[GRAVITY]
    # force m a + alpha x h + w x (w x h), torque h x a + I alpha + w x I w
    ux, uy, uz = _cross(ex, ey, ez, x, y, z)
    vx, vy, vz = _cross(wx, wy, wz, x, y, z)
    vx, vy, vz = _cross(wx, wy, wz, vx, vy, vz)
    at[PULL + a], at[PULL + a + 1], at[PULL + a + 2] = mass * ax + ux + vx, mass * ay + uy + vy, mass * az + uz + vz
    lx, ly, lz = _times_inertia(at, m, wx, wy, wz)
    lx, ly, lz = _cross(wx, wy, wz, lx, ly, lz)
    ex, ey, ez = _times_inertia(at, m, ex, ey, ez)
    tx, ty, tz = _cross(x, y, z, ax, ay, az)
    at[TORQUE + a], at[TORQUE + a + 1], at[TORQUE + a + 2] = tx + ex + lx, ty + ey + ly, tz + ez + lz


@jit_helper
def _hang_link(at: np.ndarray, i: int, p: int) -> None:
    """Add a link with all that hangs on it to the link before."""
    a, b, m, n = 3 * i, 3 * p, INERTIA + 6 * i, INERTIA + 6 * p
    dx, dy, dz = _between(at, b, a)
    mass, x, y, z = at[ALL_MASS + i], at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2]
    at[ALL_MASS + p] += mass
    at[FIRST + b] += x + mass * dx
    at[FIRST + b + 1] += y + mass * dy
    at[FIRST + b + 2] += z + mass * dz
    # I + (2 d.h + m d.d) 1 - d h' - h d' - m d d'
    xx, yy, zz = dx * (2 * x + mass * dx), dy * (2 * y + mass * dy), dz * (2 * z + mass * dz)
    at[n] += at[m] + yy + zz
    at[n + 1] += at[m + 1] + xx + zz
    at[n + 2] += at[m + 2] + xx + yy
    at[n + 3] += at[m + 3] - dx * y - x * dy - mass * dx * dy
    at[n + 4] += at[m + 4] - dx * z - x * dz - mass * dx * dz
    at[n + 5] += at[m + 5] - dy * z - y * dz - mass * dy * dz
    fx, fy, fz = at[PULL + a], at[PULL + a + 1], at[PULL + a + 2]
    tx, ty, tz = _cross(dx, dy, dz, fx, fy, fz)
    at[PULL + b] += fx
    at[PULL + b + 1] += fy
    at[PULL + b + 2] += fz
    at[TORQUE + b] += at[TORQUE + a] + tx
    at[TORQUE + b + 1] += at[TORQUE + a + 1] + ty
    at[TORQUE + b + 2] += at[TORQUE + a + 2] + tz


@jit_helper
def _fill_mass(at: np.ndarray, tree: np.ndarray, i: int) -> None:
    """A hinge's row of M: momenta of all that hangs on it per rate, l at its origin and k about it, seen by the
    coordinates before."""
    a, row = 3 * i, MASS + WIDTH * i
    x, y, z = at[AXIS + a], at[AXIS + a + 1], at[AXIS + a + 2]
    lx, ly, lz = _cross(x, y, z, at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2])
    kx, ky, kz = _times_inertia(at, INERTIA + 6 * i, x, y, z)
    at[row], at[row + 1], at[row + 2] = lx, ly, lz
    at[row + i] = x * kx + y * ky + z * kz + at[ARMATURE + i]
    j = tree[i]
    while True:
        b = 3 * j
        dx, dy, dz = _between(at, b, a)
        cx, cy, cz = _cross(dx, dy, dz, lx, ly, lz)
        cx, cy, cz = kx + cx, ky + cy, kz + cz
        if j == TORSO:
            break
        at[row + j] = at[AXIS + b] * cx + at[AXIS + b + 1] * cy + at[AXIS + b + 2] * cz
        j = tree[j]
    r = ROTATION + 9 * TORSO
    for k in range(3):
        at[row + 3 + k] = at[r + k] * cx + at[r + 3 + k] * cy + at[r + 6 + k] * cz


@jit_helper
def _find_forces(at: np.ndarray, tree: np.ndarray) -> None:
    """Mass matrix M and forces f at the state, without contacts."""
    for i in range(TORSO, len(tree)):
        _weigh_link(at, i)
    for i in range(len(tree) - 1, TORSO, -1):
        _hang_link(at, i, tree[i])
        _fill_mass(at, tree, i)
        a = 3 * i
        torque = at[AXIS + a] * at[TORQUE + a] + at[AXIS + a + 1] * at[TORQUE + a + 1]
        torque += at[AXIS + a + 2] * at[TORQUE + a + 2]
        passive = at[STIFFNESS + i] * at[Q + i] + at[DAMPING + i] * at[V + i]
        at[FORCE + i] = at[GEAR + i] * at[CONTROL + i] - passive - torque
    a, r = 3 * TORSO, ROTATION + 9 * TORSO
    for k in range(3):
        at[MASS + (WIDTH + 1) * k] = at[ALL_MASS + TORSO]
        at[FORCE + k] = -at[PULL + a + k]
        x, y, z = at[r + k], at[r + 3 + k], at[r + 6 + k]  # an axis of the torso
        row = MASS + WIDTH * (3 + k)
        at[row], at[row + 1], at[row + 2] = _cross(x, y, z, at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2])
        kx, ky, kz = _times_inertia(at, INERTIA + 6 * TORSO, x, y, z)
        for j in range(k + 1):
            at[row + 3 + j] = kx * at[r + j] + ky * at[r + 3 + j] + kz * at[r + 6 + j]
        at[FORCE + 3 + k] = -(x * at[TORQUE + a] + y * at[TORQUE + a + 1] + z * at[TORQUE + a + 2])


@jit_helper
def _find_contacts(at: np.ndarray, tree: np.ndarray, ends: int) -> int:
    """Fill the contacts of capsules' ends and spheres with the floor; returns their number."""
    count = 0
    for end in range(ends):
        i = int(at[END_BODY + end])
        x, y, z = _turned(at, ROTATION + 9 * i, at[END_X + end], at[END_Y + end], at[END_Z + end])
        height = at[ORIGIN + 3 * i + 2] + z - at[END_RADIUS + end]
        if height < at[MARGIN]:
            px, py, pz = at[ORIGIN + 3 * i] + x, at[ORIGIN + 3 * i + 1] + y, 0.5 * height
            tx, ty = _slide(at, i, end)
            normal, tangent, side = NORMAL + WIDTH * count, TANGENT + WIDTH * count, SIDE + WIDTH * count
            at[normal], at[normal + 1], at[normal + 2] = 0.0, 0.0, 1.0
            at[tangent], at[tangent + 1], at[tangent + 2] = tx, ty, 0.0
            at[side], at[side + 1], at[side + 2] = -ty, tx, 0.0
            n, t, s = at[V + 2], tx * at[V] + ty * at[V + 1], tx * at[V + 1] - ty * at[V]
            while i > 2:
                o, a = ORIGIN + 3 * max(i, TORSO), AXIS + 3 * i
                x, y, z = _cross(at[a], at[a + 1], at[a + 2], px - at[o], py - at[o + 1], pz - at[o + 2])
                along, across = tx * x + ty * y, tx * y - ty * x
                at[normal + i], at[tangent + i], at[side + i] = z, along, across
                n += z * at[V + i]
                t += along * at[V + i]
                s += across * at[V + i]
                i = tree[i]
            touch_floor(at, count, end, height - at[MARGIN], n, t, s)
            count += 1
    return count


@jit_helper
def _slide(at: np.ndarray, i: int, end: int) -> tuple[float, float]:
    """Direction of a contact's first slide: along the capsule as seen from above; of a sphere along y."""
    a = ALONG + 3 * end
    if at[a] == 0.0 and at[a + 1] == 0.0 and at[a + 2] == 0.0:
        return 0.0, 1.0
    x, y, _ = _turned(at, ROTATION + 9 * i, at[a], at[a + 1], at[a + 2])
    length = math.sqrt(x * x + y * y)
    return (1.0, 0.0) if length < 1e-15 else (x / length, y / length)


@jit_helper
def _move(at: np.ndarray, tree: np.ndarray, v: int, h: float) -> None:
    """From the state at the beginning of the substep with the velocities at offset v for so long."""
    for i in range(len(tree)):
        if i < 3 or i > TORSO:
            at[Q + i] = at[START_Q + i] + h * at[v + i]
    x, y, z = at[v + 3], at[v + 4], at[v + 5]
    speed = math.sqrt(x * x + y * y + z * z)
    q0, q1, q2, q3 = at[START_QUAT], at[START_QUAT + 1], at[START_QUAT + 2], at[START_QUAT + 3]
    scale = 1 / math.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    c, s = math.cos(0.5 * h * speed) * scale, 0.0
    if speed > 0.0:
        s = math.sin(0.5 * h * speed) / speed * scale
    x, y, z = x * s, y * s, z * s
    at[QUAT] = q0 * c - q1 * x - q2 * y - q3 * z
    at[QUAT + 1] = q0 * x + q1 * c + q2 * z - q3 * y
    at[QUAT + 2] = q0 * y - q1 * z + q2 * c + q3 * x
    at[QUAT + 3] = q0 * z + q1 * y - q2 * x + q3 * c


@jit_helper
def _next_stage(at: np.ndarray, tree: np.ndarray, stage: int) -> None:
    """After the accelerations of a stage of the classical Runge-Kutta method: the state of the next one, or the end."""
    h = at[STEP]
    share, weight = 0.5 * h if stage < 2 else h, 1 / 6 if stage in (0, 3) else 1 / 3
    for k in range(4 if stage == 0 else 0):
        at[START_QUAT + k] = at[QUAT + k]
    for i in range(len(tree)):
        if stage == 0:
            at[START_Q + i], at[START_V + i], at[SUM_V + i], at[SUM_A + i] = at[Q + i], at[V + i], 0.0, 0.0
        at[SUM_V + i] += weight * at[V + i]
        at[SUM_A + i] += weight * at[U + i]
    if stage < 3:
        _move(at, tree, V, share)
        for i in range(len(tree)):
            at[V + i] = at[START_V + i] + share * at[U + i]
    else:
        _move(at, tree, SUM_V, h)
        for i in range(len(tree)):
            at[V + i] = at[START_V + i] + h * at[SUM_A + i]


@jit_helper
def step_spatial(
    at: np.ndarray, shape: np.ndarray, state: np.ndarray, control: np.ndarray, substeps: int, readings: np.ndarray
) -> bool:
    """Advance a row of MuJoCo's states (time, positions, velocities); false if MuJoCo must: the row is as it was.

    `readings` are the bodies' positions (xpos) as MuJoCo leaves them: those of the last Runge-Kutta stage.
    """
    n = shape[COORDINATES]
    tree = shape[TREE : TREE + n]
    for i in range(n):
        at[V + i], at[U + i] = state[2 + n + i], 0.0
        if i < 3 or i > TORSO:
            at[Q + i] = state[1 + i if i < 3 else 2 + i]
    for k in range(4):
        at[QUAT + k] = state[4 + k]
    set_controls(at, shape, control)
    for k in range(4 * substeps):
        _place_links(at, tree)
        _find_forces(at, tree)
        find_limits(at, tree)
        if solve_tree_contacts(at, tree, _find_contacts(at, tree, shape[END_COUNT])) < 0:
            return False
        _next_stage(at, tree, k % 4)
        if not is_sane(at, tree):
            return False
    for i in range(n):
        state[2 + n + i] = at[V + i]
        if i < 3 or i > TORSO:
            state[1 + i if i < 3 else 2 + i] = at[Q + i]
    for k in range(4):
        state[4 + k] = at[QUAT + k]
    for _ in range(substeps):
        state[0] += at[STEP]
    for body in range(1, shape[REST_COUNT]):
        i, p = shape[REST + body], PLACES + 3 * body
        x, y, z = _turned(at, ROTATION + 9 * i, at[p], at[p + 1], at[p + 2])
        a = ORIGIN + 3 * i
        readings[3 * body], readings[3 * body + 1], readings[3 * body + 2] = at[a] + x, at[a + 1] + y, at[a + 2] + z
    return True
