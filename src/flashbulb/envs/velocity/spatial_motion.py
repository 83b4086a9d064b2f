"""Compiled dynamics of a robot that moves freely, with legs on hinges: Ant.

The links and the forces on them are those of `spatial_links.py`. The physics are MuJoCo's, with the contact problem of
`tree_contact.py` solved to the end, so the two differ by rounding and by MuJoCo's tolerance.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.rotations import out_of_frame, turn
from flashbulb.envs.velocity.spatial_links import (
    ALONG,
    AXIS,
    ORIGIN,
    PLACES,
    QUAT,
    ROTATION,
    START_QUAT,
    TORSO,
    cross,
    find_link_forces,
    place_links,
)
from flashbulb.envs.velocity.tree_contact import NORMAL, SIDE, TANGENT, WIDTH, U, solve_tree_contacts
from flashbulb.envs.velocity.tree_robot import (
    COORDINATES,
    END_BODY,
    END_COUNT,
    END_RADIUS,
    END_X,
    END_Y,
    END_Z,
    MARGIN,
    REST,
    REST_COUNT,
    START_Q,
    START_V,
    STEP,
    SUM_A,
    SUM_V,
    TREE,
    Q,
    V,
    find_limits,
    is_sane,
    set_controls,
    touch_floor,
)
from flashbulb.jit import jit_helper


@jit_helper
def _find_contacts(at: np.ndarray, tree: np.ndarray, ends: int) -> int:
    """Fill the contacts of capsules' ends and spheres with the floor; returns their number."""
    count = 0
    for end in range(ends):
        i = int(at[END_BODY + end])
        x, y, z = out_of_frame(at, ROTATION + 9 * i, at[END_X + end], at[END_Y + end], at[END_Z + end])
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
                x, y, z = cross(at[a], at[a + 1], at[a + 2], px - at[o], py - at[o + 1], pz - at[o + 2])
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
    x, y, _ = out_of_frame(at, ROTATION + 9 * i, at[a], at[a + 1], at[a + 2])
    length = math.sqrt(x * x + y * y)
    return (1.0, 0.0) if length < 1e-15 else (x / length, y / length)


@jit_helper
def _move(at: np.ndarray, tree: np.ndarray, v: int, h: float) -> None:
    """From the state at the beginning of the substep with the velocities at offset v for so long."""
    for i in range(len(tree)):
        if i < 3 or i > TORSO:
            at[Q + i] = at[START_Q + i] + h * at[v + i]
    for k in range(4):
        at[QUAT + k] = at[START_QUAT + k]
    turn(at, QUAT, h, at[v + 3], at[v + 4], at[v + 5])


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
        place_links(at, tree)
        find_link_forces(at, tree)
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
        x, y, z = out_of_frame(at, ROTATION + 9 * i, at[p], at[p + 1], at[p + 2])
        a = ORIGIN + 3 * i
        readings[3 * body], readings[3 * body + 1], readings[3 * body + 2] = at[a] + x, at[a + 1] + y, at[a + 2] + z
    return True
