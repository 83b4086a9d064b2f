"""Rotations in compiled code, by offsets in the array of a robot: quaternions (w, x, y, z), 3 x 3 matrices by rows, and
symmetric matrices as (xx, yy, zz, xy, xz, yz)."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.jit import jit_helper


@jit_helper
def normalise(at: np.ndarray, q: int) -> None:
    square = 0.0
    for k in range(4):
        square += at[q + k] * at[q + k]
    for k in range(4):
        at[q + k] /= math.sqrt(square)


@jit_helper
def make_rotation(at: np.ndarray, quat: int, r: int) -> None:
    """The matrix at offset r of the quaternion at offset quat."""
    w, x = at[quat], at[quat + 1]
    y, z = at[quat + 2], at[quat + 3]
    at[r], at[r + 1], at[r + 2] = w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)
    at[r + 3], at[r + 4], at[r + 5] = 2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)
    at[r + 6], at[r + 7], at[r + 8] = 2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z


@jit_helper
def turn(at: np.ndarray, quat: int, h: float, x: float, y: float, z: float) -> None:
    """Rotate by the angular velocity (x, y, z), given in the quaternion's own frame, for h seconds."""
    speed = math.sqrt(x * x + y * y + z * z)
    if speed < 1e-15:
        return
    half = 0.5 * h * speed
    c, s = math.cos(half), math.sin(half) / speed
    x, y, z = x * s, y * s, z * s
    q0, q1 = at[quat], at[quat + 1]
    q2, q3 = at[quat + 2], at[quat + 3]
    at[quat] = q0 * c - q1 * x - q2 * y - q3 * z
    at[quat + 1] = q0 * x + q1 * c + q2 * z - q3 * y
    at[quat + 2] = q0 * y - q1 * z + q2 * c + q3 * x
    at[quat + 3] = q0 * z + q1 * y - q2 * x + q3 * c
    normalise(at, quat)


@jit_helper
def out_of_frame(at: np.ndarray, r: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The matrix at offset r times a vector: from its frame into the outer one."""
    return (
        at[r] * x + at[r + 1] * y + at[r + 2] * z,
        at[r + 3] * x + at[r + 4] * y + at[r + 5] * z,
        at[r + 6] * x + at[r + 7] * y + at[r + 8] * z,
    )


@jit_helper
def into_frame(at: np.ndarray, r: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The vector in the axes of the frame at offset r."""
    return (
        at[r] * x + at[r + 3] * y + at[r + 6] * z,
        at[r + 1] * x + at[r + 4] * y + at[r + 7] * z,
        at[r + 2] * x + at[r + 5] * y + at[r + 8] * z,
    )


@jit_helper
def times_symmetric(at: np.ndarray, m: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The symmetric matrix at offset m times a vector."""
    return (
        at[m] * x + at[m + 3] * y + at[m + 4] * z,
        at[m + 3] * x + at[m + 1] * y + at[m + 5] * z,
        at[m + 4] * x + at[m + 5] * y + at[m + 2] * z,
    )


@jit_helper
def turn_symmetric(at: np.ndarray, r: int, own: int, out: int) -> None:
    """R I R', of the matrix at offset r and the symmetric one at offset `own`."""
    for j in range(3):
        x, y, z = times_symmetric(at, own, at[r + 3 * j], at[r + 3 * j + 1], at[r + 3 * j + 2])
        for k in range(j + 1):
            entry = out + (j if j == k else 2 + j + k)
            at[entry] = x * at[r + 3 * k] + y * at[r + 3 * k + 1] + z * at[r + 3 * k + 2]
