"""A robot that moves freely, with legs on hinges (Ant): its links, where they are, and the forces on them.

The coordinates are MuJoCo's: position of the torso, its orientation, angles of the hinges. Velocities are those of the
position in world axes, the angular velocity in the torso's axes, rates of the hinges. A link is what moves together:
the torso with the bodies fixed to it, and a body on each hinge. It has the number of its last coordinate (the torso 5).
Vectors are in world axes, relative to the link's origin: the torso's, or a point of the hinge.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.rotations import make_rotation, normalise, out_of_frame, times_symmetric, turn_symmetric
from flashbulb.envs.velocity.tree_contact import ENDS, FORCE, MASS, WIDTH
from flashbulb.envs.velocity.tree_robot import (
    ARMATURE,
    CONTROL,
    DAMPING,
    END_BODY,
    END_X,
    END_Y,
    END_Z,
    GEAR,
    GRAVITY,
    REST,
    REST_COUNT,
    STIFFNESS,
    TREE,
    TREE_MEMORY,
    Q,
    TreeRobot,
    V,
    fill_ends,
    new_robot,
    own_inertia,
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
def cross(x: float, y: float, z: float, u: float, v: float, w: float) -> tuple[float, float, float]:
    return y * w - z * v, z * u - x * w, x * v - y * u


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
    r = ROTATION + 9 * TORSO
    normalise(at, QUAT)
    make_rotation(at, QUAT, r)
    o = OMEGA + 3 * TORSO
    at[o], at[o + 1], at[o + 2] = out_of_frame(at, r, at[V + 3], at[V + 4], at[V + 5])
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
    at[r], at[r + 3], at[r + 6] = out_of_frame(at, before, xx, xy, xz)
    at[r + 1], at[r + 4], at[r + 7] = out_of_frame(at, before, yx, yy, yz)
    at[r + 2], at[r + 5], at[r + 8] = out_of_frame(at, before, zx, zy, zz)
    a = AXIS + 3 * i
    at[a], at[a + 1], at[a + 2] = out_of_frame(at, before, x, y, z)


@jit_helper
def place_links(at: np.ndarray, tree: np.ndarray) -> None:
    """Positions, angular velocities, and accelerations by velocities alone."""
    _turn_torso(at)
    for i in range(TORSO + 1, len(tree)):
        p = tree[i]
        _turn_link(at, i, p)
        a, b, o = 3 * i, 3 * p, OFFSET + 3 * i
        dx, dy, dz = out_of_frame(at, ROTATION + 9 * p, at[o], at[o + 1], at[o + 2])
        wx, wy, wz = at[OMEGA + b], at[OMEGA + b + 1], at[OMEGA + b + 2]
        # the origin's acceleration: alpha x d + w x (w x d)
        ax, ay, az = cross(at[ALPHA + b], at[ALPHA + b + 1], at[ALPHA + b + 2], dx, dy, dz)
        vx, vy, vz = cross(wx, wy, wz, dx, dy, dz)
        vx, vy, vz = cross(wx, wy, wz, vx, vy, vz)
        at[ORIGIN + a], at[FREE + a] = at[ORIGIN + b] + dx, at[FREE + b] + ax + vx
        at[ORIGIN + a + 1], at[FREE + a + 1] = at[ORIGIN + b + 1] + dy, at[FREE + b + 1] + ay + vy
        at[ORIGIN + a + 2], at[FREE + a + 2] = at[ORIGIN + b + 2] + dz, at[FREE + b + 2] + az + vz
        rate = at[V + i]
        x, y, z = rate * at[AXIS + a], rate * at[AXIS + a + 1], rate * at[AXIS + a + 2]
        cx, cy, cz = cross(wx, wy, wz, x, y, z)
        at[OMEGA + a], at[ALPHA + a] = wx + x, at[ALPHA + b] + cx
        at[OMEGA + a + 1], at[ALPHA + a + 1] = wy + y, at[ALPHA + b + 1] + cy
        at[OMEGA + a + 2], at[ALPHA + a + 2] = wz + z, at[ALPHA + b + 2] + cz


@jit_helper
def _weigh_link(at: np.ndarray, i: int) -> None:
    """A link alone: first moment and inertia in world axes; force and torque that its accelerations by velocities
    and its weight ask for."""
    a, r, m, own = 3 * i, ROTATION + 9 * i, INERTIA + 6 * i, OWN_INERTIA + 6 * i
    x, y, z = out_of_frame(at, r, at[CENTRE + a], at[CENTRE + a + 1], at[CENTRE + a + 2])
    at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2] = x, y, z
    mass = at[ALL_MASS + i] = at[OWN_MASS + i]
    turn_symmetric(at, r, own, m)
    wx, wy, wz = at[OMEGA + a], at[OMEGA + a + 1], at[OMEGA + a + 2]
    ex, ey, ez = at[ALPHA + a], at[ALPHA + a + 1], at[ALPHA + a + 2]
    ax, ay, az = at[FREE + a], at[FREE + a + 1], at[FREE + a + 2] + at[GRAVITY]
    # force m a + alpha x h + w x (w x h), torque h x a + I alpha + w x I w
    ux, uy, uz = cross(ex, ey, ez, x, y, z)
    vx, vy, vz = cross(wx, wy, wz, x, y, z)
    vx, vy, vz = cross(wx, wy, wz, vx, vy, vz)
    at[PULL + a], at[PULL + a + 1], at[PULL + a + 2] = mass * ax + ux + vx, mass * ay + uy + vy, mass * az + uz + vz
    lx, ly, lz = times_symmetric(at, m, wx, wy, wz)
    lx, ly, lz = cross(wx, wy, wz, lx, ly, lz)
    ex, ey, ez = times_symmetric(at, m, ex, ey, ez)
    tx, ty, tz = cross(x, y, z, ax, ay, az)
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
    tx, ty, tz = cross(dx, dy, dz, fx, fy, fz)
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
    lx, ly, lz = cross(x, y, z, at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2])
    kx, ky, kz = times_symmetric(at, INERTIA + 6 * i, x, y, z)
    at[row], at[row + 1], at[row + 2] = lx, ly, lz
    at[row + i] = x * kx + y * ky + z * kz + at[ARMATURE + i]
    j = tree[i]
    while True:
        b = 3 * j
        dx, dy, dz = _between(at, b, a)
        cx, cy, cz = cross(dx, dy, dz, lx, ly, lz)
        cx, cy, cz = kx + cx, ky + cy, kz + cz
        if j == TORSO:
            break
        at[row + j] = at[AXIS + b] * cx + at[AXIS + b + 1] * cy + at[AXIS + b + 2] * cz
        j = tree[j]
    r = ROTATION + 9 * TORSO
    for k in range(3):
        at[row + 3 + k] = at[r + k] * cx + at[r + 3 + k] * cy + at[r + 6 + k] * cz


@jit_helper
def find_link_forces(at: np.ndarray, tree: np.ndarray) -> None:
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
        at[row], at[row + 1], at[row + 2] = cross(x, y, z, at[FIRST + a], at[FIRST + a + 1], at[FIRST + a + 2])
        kx, ky, kz = times_symmetric(at, INERTIA + 6 * TORSO, x, y, z)
        for j in range(k + 1):
            at[row + 3 + j] = kx * at[r + j] + ky * at[r + 3 + j] + kz * at[r + 6 + j]
        at[FORCE + 3 + k] = -(x * at[TORQUE + a] + y * at[TORQUE + a + 1] + z * at[TORQUE + a + 2])
