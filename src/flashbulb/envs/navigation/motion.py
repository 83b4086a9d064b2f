"""How the Point moves where it touches nothing (specification, section B1), eight Points at a time.

A lane is one Point. What is known of the lanes stands in one array, a stretch of eight numbers for each quantity, so
that the compiler works on all lanes at once.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.jit import jit_inline

GEAR, FORCE_LIMIT = 0.3, 0.05  # of both actuators
SLIDE_DAMPING, HINGE_DAMPING = 0.01, 0.005
SMALL = 0.05  # angle at which the cut-off series of sine and cosine are still exact to the last digit

LANES = 8
# Where each quantity begins: position, cosine and sine of the yaw, yaw, their rates, and what the motors do.
X, Y, C, S, YAW, U, V, W, THRUST, TURN = range(0, 10 * LANES, LANES)
POSE, QUANTITIES = 4 * LANES, 10 * LANES  # the first four are the pose

# The mass matrix in the robot's frame is [[m, 0, 0], [0, m, k], [0, k, I]], where k is mass times distance of the
# centre of mass from the origin. To divide it into a force: 1 / m, k, 1 / (I - k^2 / m).
Inertia = tuple[float, float, float]


def inertia_of(mass: float, lever: float, about: float) -> Inertia:
    return 1 / mass, lever, 1 / (about - lever * lever / mass)


@jit_inline
def accelerations(
    c: float, s: float, u: float, v: float, w: float, thrust: float, turn: float, body: Inertia
) -> tuple[float, float, float]:
    """Ahead, to the left, and of the yaw, under motors, damping, and the centrifugal pull of the nose."""
    ahead, left = c * u + s * v, c * v - s * u
    torque = GEAR * min(max(turn - GEAR * w, -FORCE_LIMIT), FORCE_LIMIT) - HINGE_DAMPING * w
    per_mass, lever, per_spin = body
    pull, drag = thrust + lever * w * w - SLIDE_DAMPING * ahead, -SLIDE_DAMPING * left
    spin = (torque - lever * per_mass * drag) * per_spin
    return pull * per_mass, (drag - lever * spin) * per_mass, spin


@jit_inline
def turned(c: float, s: float, angle: float) -> tuple[float, float]:
    """Cosine and sine after turning by a small angle: the sum formulas, with the series of its sine and versine."""
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
        at[C + j], at[S + j] = turned(c, s, h * w)
    for j in range(LANES):  # nobody turns so fast by its own motor
        if abs(h * at[W + j]) > SMALL:
            at[C + j], at[S + j] = math.cos(at[YAW + j]), math.sin(at[YAW + j])
