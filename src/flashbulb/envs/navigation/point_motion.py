"""The equations of the Point robot: how it moves without contacts, and whether it can touch something.

Eight Points are computed at a time, one per SIMD lane. All quantities of the lanes are in one array, eight consecutive
numbers for each quantity.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.tasks import BOX_HALF, BUTTON_RADIUS
from flashbulb.jit import jit_helper, jit_inline

GEAR, FORCE_LIMIT = 0.3, 0.05  # of both actuators
SLIDE_DAMPING, HINGE_DAMPING = 0.01, 0.005
SMALL = 0.05  # angle up to which the truncated series of sine and cosine are exact to the last digit

LANES = 8
# Offset of each quantity: position, cosine and sine of the yaw, yaw, their rates, and the motor inputs.
X, Y, C, S, YAW, U, V, W, THRUST, TURN = range(0, 10 * LANES, LANES)
POSE, QUANTITIES = 4 * LANES, 10 * LANES  # the first four are the pose

# The mass matrix in the robot's frame is [[m, 0, 0], [0, m, k], [0, k, I]], where k is mass times distance of the
# centre of mass from the origin. Its inverse needs 1 / m, k and 1 / (I - k^2 / m).
Inertia = tuple[float, float, float]


def inertia_of(mass: float, lever: float, moment: float) -> Inertia:
    return 1 / mass, lever, 1 / (moment - lever * lever / mass)


@jit_inline
def accelerations(
    c: float, s: float, u: float, v: float, w: float, thrust: float, turn: float, body: Inertia
) -> tuple[float, float, float]:
    """Forward, leftward and yaw acceleration under motors, damping, and the centrifugal force of the nose."""
    ahead, left = c * u + s * v, c * v - s * u
    torque = GEAR * min(max(turn - GEAR * w, -FORCE_LIMIT), FORCE_LIMIT) - HINGE_DAMPING * w
    per_mass, lever, per_spin = body
    pull, drag = thrust + lever * w * w - SLIDE_DAMPING * ahead, -SLIDE_DAMPING * left
    spin = (torque - lever * per_mass * drag) * per_spin
    return pull * per_mass, (drag - lever * spin) * per_mass, spin


@jit_inline
def rotated(c: float, s: float, angle: float) -> tuple[float, float]:
    """Cosine and sine after a rotation by a small angle: the addition theorems with series of its sine and versine."""
    square = angle * angle
    sine = angle * (1.0 - square * (1 / 6) * (1.0 - square * (1 / 20) * (1.0 - square * (1 / 42))))
    versine = square * (1 / 2) * (1.0 - square * (1 / 12) * (1.0 - square * (1 / 30) * (1.0 - square * (1 / 56))))
    return c - (c * versine + s * sine), s - (s * versine - c * sine)


@jit_inline
def move(at: np.ndarray, h: float, body: Inertia) -> None:
    """A substep: semi-implicit Euler, implicit in the joint damping: v += h (M + h D)^-1 f, q += h v."""
    for j in range(LANES):
        c, s, u, v, w = at[C + j], at[S + j], at[U + j], at[V + j], at[W + j]
        ahead, left, spin = accelerations(c, s, u, v, w, at[THRUST + j], at[TURN + j], body)
        u, v, w = u + h * (c * ahead - s * left), v + h * (s * ahead + c * left), w + h * spin
        at[U + j], at[V + j], at[W + j] = u, v, w
        at[X + j] += h * u
        at[Y + j] += h * v
        at[YAW + j] += h * w
        at[C + j], at[S + j] = rotated(c, s, h * w)
    for j in range(LANES):  # faster than the motor can turn the robot
        if abs(h * at[W + j]) > SMALL:
            at[C + j], at[S + j] = math.cos(at[YAW + j]), math.sin(at[YAW + j])


# Contact tests. The robot is a disc of radius 0.1 and, in front of it, a square nose with half-width 0.05 centred 0.1
# from the origin; (c, s) is its heading. Everything has the same height, so the plane decides. The tests are exact for
# upright objects; otherwise they may report a contact where there is none, but never the reverse.

DISC, NOSE_AT, NOSE_HALF = 0.1, 0.1, 0.05
ROBOT_REACH = math.hypot(NOSE_AT + NOSE_HALF, NOSE_HALF)  # largest distance from the origin
BOX_REACH = math.sqrt(2) * BOX_HALF
TILTED_REACH = math.sqrt(3) * BOX_HALF
UPRIGHT = 1e-9
GAP = 1e-6  # objects nearer than this count as touching


@jit_helper
def _outside(x: float, y: float, half: float) -> float:
    """Distance of a point from a square around the origin."""
    return math.hypot(max(abs(x) - half, 0.0), max(abs(y) - half, 0.0))


@jit_helper
def clear_of_button(x: float, y: float, c: float, s: float, centre: np.ndarray) -> bool:
    """Whether the robot is clear of a button."""
    dx, dy = centre[0] - x, centre[1] - y
    away = math.hypot(dx, dy)
    if away > ROBOT_REACH + BUTTON_RADIUS + GAP:
        return True
    if away < DISC + BUTTON_RADIUS + GAP:
        return False
    ahead, left = c * dx + s * dy, c * dy - s * dx
    return _outside(ahead - NOSE_AT, left, NOSE_HALF) > BUTTON_RADIUS + GAP


@jit_helper
def clear_of_box(x: float, y: float, c: float, s: float, body: np.ndarray, slack: float) -> bool:
    """Whether the robot is clear of a box that may move by `slack`; `body` is its position and quaternion."""
    dx, dy = body[0] - x, body[1] - y
    away = math.hypot(dx, dy)
    if abs(body[4]) > UPRIGHT or abs(body[5]) > UPRIGHT:
        return away > ROBOT_REACH + TILTED_REACH + slack + GAP
    if away > ROBOT_REACH + BOX_REACH + slack + GAP:
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
