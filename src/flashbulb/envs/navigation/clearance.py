"""Can the Point touch something? Exact in the plane for what stands upright, never wrong on the safe side.

The robot is a disc of radius 0.1 and, ahead of it, a square nose with half-width 0.05 centred 0.1 from its origin;
(c, s) is its heading. Everything is at one height, so a gap in the plane is a gap in space.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.tasks import BOX_HALF, BUTTON_RADIUS
from flashbulb.jit import jit_helper

DISC, NOSE_AT, NOSE_HALF = 0.1, 0.1, 0.05
REACH = math.hypot(NOSE_AT + NOSE_HALF, NOSE_HALF)  # of the robot from its origin
BOX_REACH = math.sqrt(2) * BOX_HALF
TILTED_REACH = math.sqrt(3) * BOX_HALF
UPRIGHT = 1e-9
GAP = 1e-6  # two things nearer than this are taken to touch


@jit_helper
def _outside(x: float, y: float, half: float) -> float:
    """Distance of a point from a square around the origin."""
    return math.hypot(max(abs(x) - half, 0.0), max(abs(y) - half, 0.0))


@jit_helper
def clear_of_button(x: float, y: float, c: float, s: float, centre: np.ndarray) -> bool:
    dx, dy = centre[0] - x, centre[1] - y
    away = math.hypot(dx, dy)
    if away > REACH + BUTTON_RADIUS + GAP:
        return True
    if away < DISC + BUTTON_RADIUS + GAP:
        return False
    ahead, left = c * dx + s * dy, c * dy - s * dx
    return _outside(ahead - NOSE_AT, left, NOSE_HALF) > BUTTON_RADIUS + GAP


@jit_helper
def clear_of_box(x: float, y: float, c: float, s: float, body: np.ndarray, slack: float) -> bool:
    """`body` is the place and quaternion of a box, which may move by `slack`."""
    dx, dy = body[0] - x, body[1] - y
    away = math.hypot(dx, dy)
    if abs(body[4]) > UPRIGHT or abs(body[5]) > UPRIGHT:
        return away > REACH + TILTED_REACH + slack + GAP
    if away > REACH + BOX_REACH + slack + GAP:
        return True
    if away < DISC + BOX_HALF + slack + GAP:
        return False
    bc, bs = body[3] * body[3] - body[6] * body[6], 2 * body[3] * body[6]  # cosine and sine of its yaw
    if _outside(bc * dx + bs * dy, bc * dy - bs * dx, BOX_HALF) < DISC + slack + GAP:
        return False
    # Two squares are apart if one of their four side directions separates them.
    nx, ny = dx - c * NOSE_AT, dy - s * NOSE_AT
    tilt = abs(bc * c + bs * s) + abs(bs * c - bc * s)
    along = max(abs(c * nx + s * ny), abs(c * ny - s * nx)) - NOSE_HALF - BOX_HALF * tilt
    across = max(abs(bc * nx + bs * ny), abs(bc * ny - bs * nx)) - BOX_HALF - NOSE_HALF * tilt
    return max(along, across) > slack + GAP
