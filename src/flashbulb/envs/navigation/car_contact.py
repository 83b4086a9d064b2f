"""The Car's contact problem: the accelerations that MuJoCo's convex contact model gives it on the floor.

MuJoCo's acceleration u minimises (u - u0)' M (u - u0) / 2 + sum over rows of D min(0, J u - aref)^2 / 2, where u0 is
the acceleration without contacts: M u0 = f. Each contact has ten rows, the edges of its friction pyramid: x_n + mu_k
x_k and x_n - mu_k x_k, where x = J u - aref in the contact's axes: n is the normal, and k one of two slides, two
rolls and the twist about n. Between the points where rows change sign the function is quadratic, so Newton's method
arrives at the minimum as soon as it has the right rows.

All numbers of a Car are in one array: in compiled code, every array that is passed or sliced costs time. What the
unknowns and the contacts are is decided in `car_motion.py`.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.jit import jit_fastmath_helper, jit_helper

MAX_ITERATIONS = 60
ACCURATE = 1e-14  # a step smaller than this relative to u ends the iteration
FLAT = 0.02  # share of the slope that may be left when a search along a direction ends

N, CONTACTS = 11, 5  # unknowns, possible contacts
AXES, J_SIZE = 6, 6 * N  # of a contact: n first, then the five k

# The array: the problem,
MASS_MATRIX = 0  # M, both triangles
FORCE = MASS_MATRIX + N * N  # f
STIFFNESS = FORCE + N  # D of each contact, 0 if it does not touch
JACOBIAN = STIFFNESS + CONTACTS  # of each contact; the rows of k are multiplied by mu_k
REFERENCE = JACOBIAN + CONTACTS * J_SIZE  # -aref of each contact, multiplied likewise
# the solution (before: the first guess),
U = REFERENCE + CONTACTS * AXES
# and the solver's memory.
X = U + N  # J u - aref of each contact
DX = X + CONTACTS * AXES  # its change along the search direction
BOTH = DX + CONTACTS * AXES  # of the two rows of each k: how many are negative, that is, push;
UNEQUAL = BOTH + CONTACTS * AXES  # and those with plus less those with minus
RESIDUAL = UNEQUAL + CONTACTS * AXES  # M u - f
GRADIENT = RESIDUAL + N
DIRECTION = GRADIENT + N
MASS_DIRECTION = DIRECTION + N  # M times the direction
HESSIAN = MASS_DIRECTION + N  # lower triangle
PULL = HESSIAN + N * N  # second derivatives in a contact's axes times its Jacobian
CONTACT_MEMORY = PULL + J_SIZE


@jit_fastmath_helper
def multiply(at: np.ndarray, matrix: int, rows: int, vector: int, out: int) -> None:
    """Matrix times vector; all are offsets."""
    for j in range(rows):
        total = 0.0
        for k in range(N):
            total += at[matrix + N * j + k] * at[vector + k]
        at[out + j] = total


@jit_fastmath_helper
def _add_contact(at: np.ndarray, c: int) -> None:
    """Add a contact's rows to gradient and Hessian."""
    d, x, jacobian = at[STIFFNESS + c], X + AXES * c, JACOBIAN + J_SIZE * c
    both, unequal = BOTH + AXES * c, UNEQUAL + AXES * c
    # Second derivatives in the contact's axes: of n with itself, of n with each k, and of each k with itself. The
    # products with J are made here, and that with x is the first derivative.
    for j in range(N):
        normal, total = at[jacobian + j], 0.0
        for k in range(1, AXES):
            own = at[jacobian + N * k + j]
            total += at[both + k] * normal + at[unequal + k] * own
            at[PULL + N * k + j] = d * (at[unequal + k] * normal + at[both + k] * own)
        at[PULL + j] = d * total
    for k in range(AXES):
        for i in range(N):
            entry = at[jacobian + N * k + i]
            at[GRADIENT + i] += at[PULL + N * k + i] * at[x + k]
            for j in range(i + 1):
                at[HESSIAN + N * i + j] += entry * at[PULL + N * k + j]


@jit_fastmath_helper
def _solve(at: np.ndarray) -> None:
    """Replace the direction y by H^-1 y.

    H = L diag(d) L' is factorised in place; entries below the diagonal become those of L, and those on it 1 / d.
    """
    h, y = HESSIAN, DIRECTION
    for k in range(N):
        inverse = 1 / at[h + N * k + k]
        at[h + N * k + k] = inverse
        for i in range(k + 1, N):
            at[PULL + i] = at[h + N * i + k]
            at[h + N * i + k] *= inverse
        for i in range(k + 1, N):
            factor = at[h + N * i + k]
            for j in range(k + 1, i + 1):
                at[h + N * i + j] -= factor * at[PULL + j]
            at[y + i] -= factor * at[y + k]
    for i in range(N - 1, -1, -1):
        at[y + i] *= at[h + N * i + i]
        for k in range(i + 1, N):
            at[y + i] -= at[h + N * k + i] * at[y + k]


@jit_helper
def _newton_direction(at: np.ndarray) -> None:
    """Gradient and Hessian at u, and the step to the minimum if the rows that push stay the same: -H^-1 g."""
    for k in range(N * N):
        at[HESSIAN + k] = at[MASS_MATRIX + k]
    for k in range(N):
        at[GRADIENT + k] = at[RESIDUAL + k]
    for c in range(CONTACTS):
        if at[STIFFNESS + c] > 0.0:
            _add_contact(at, c)
    for k in range(N):
        at[DIRECTION + k] = -at[GRADIENT + k]
    _solve(at)


@jit_helper
def _search(at: np.ndarray) -> float:
    """How far to go along the direction: nearly to the minimum, by Newton's method within a bracket."""
    slope, curve, steepest = 0.0, 0.0, 0.0  # the first two without contacts
    for k in range(N):
        slope += at[RESIDUAL + k] * at[DIRECTION + k]
        curve += at[MASS_DIRECTION + k] * at[DIRECTION + k]
        steepest -= at[GRADIENT + k] * at[DIRECTION + k]
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(20):
        first, second = slope + t * curve, curve
        for c in range(CONTACTS):
            d = at[STIFFNESS + c]
            if d > 0.0:
                x, dx = X + AXES * c, DX + AXES * c
                n, dn = at[x] + t * at[dx], at[dx]
                for k in range(1, AXES):
                    y, dy = at[x + k] + t * at[dx + k], at[dx + k]
                    plus, minus = d * (dn + dy) * (n + y < 0.0), d * (dn - dy) * (n - y < 0.0)
                    first += plus * (n + y) + minus * (n - y)
                    second += plus * (dn + dy) + minus * (dn - dy)
        if abs(first) <= FLAT * steepest:
            break
        if first < 0.0:
            low = t
        else:
            high = t
        t -= first / second
        if not low < t < high:
            t = 0.5 * (low + high)
    return t


@jit_helper
def _count_pushing(at: np.ndarray) -> bool:
    """Count the rows that push at X + DX; returns whether they are the same as before."""
    same = True
    for c in range(CONTACTS):
        if at[STIFFNESS + c] > 0.0:
            n = at[X + AXES * c] + at[DX + AXES * c]
            for k in range(AXES * c + 1, AXES * c + AXES):
                y = at[X + k] + at[DX + k]
                plus, minus = 1.0 * (n + y < 0.0), 1.0 * (n - y < 0.0)
                same &= at[BOTH + k] == plus + minus and at[UNEQUAL + k] == plus - minus
                at[BOTH + k], at[UNEQUAL + k] = plus + minus, plus - minus
    return same


@jit_helper
def solve_contacts(at: np.ndarray) -> int:
    """Replace u by the solution; returns the number of iterations, or -1 if they were not enough."""
    for c in range(CONTACTS):
        if at[STIFFNESS + c] > 0.0:
            multiply(at, JACOBIAN + J_SIZE * c, AXES, U, X + AXES * c)
            for k in range(AXES * c, AXES * c + AXES):
                at[X + k] += at[REFERENCE + k]
                at[DX + k] = 0.0
    multiply(at, MASS_MATRIX, N, U, RESIDUAL)
    for k in range(N):
        at[RESIDUAL + k] -= at[FORCE + k]
    _count_pushing(at)
    for iteration in range(MAX_ITERATIONS):
        _newton_direction(at)
        for c in range(CONTACTS):
            if at[STIFFNESS + c] > 0.0:
                multiply(at, JACOBIAN + J_SIZE * c, AXES, DIRECTION, DX + AXES * c)
        same, t = _count_pushing(at), 1.0
        if not same:
            multiply(at, MASS_MATRIX, N, DIRECTION, MASS_DIRECTION)
            t = _search(at)
        largest, change = 0.0, 0.0
        for k in range(N):
            at[U + k] += t * at[DIRECTION + k]
            largest, change = max(largest, abs(at[U + k])), max(change, abs(at[DIRECTION + k]))
        if same or change <= ACCURATE * largest:
            return iteration + 1
        if not math.isfinite(change):
            return -1
        for k in range(N):
            at[RESIDUAL + k] += t * at[MASS_DIRECTION + k]
        for k in range(CONTACTS * AXES):
            at[X + k] += t * at[DX + k]
            at[DX + k] = 0.0
        if t != 1.0:
            _count_pushing(at)
    return -1
