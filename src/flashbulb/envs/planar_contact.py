"""The contact problem of a robot in the plane: the accelerations that MuJoCo's convex model of contacts gives it.

MuJoCo's acceleration u minimises (u - u0)' M (u - u0) / 2 + sum over rows of D min(0, x)^2 / 2, where x = J u - aref
and u0 is the acceleration without contacts: M u0 = f. A joint beyond its limit is one row. A capsule's end on the
floor is four, the edges of its friction pyramid: n + mu t, n - mu t for the slide t along the floor in the plane, and
n twice for the slide across it, along which nothing moves. Between the points where rows change sign the function is
quadratic, so Newton's method arrives at the minimum as soon as it has the right rows.

A contact with the floor couples only the coordinates between a body and the root, as the mass matrix does. So the
Hessian has the mass matrix's zeros, and eliminating from the tips of the legs to the root keeps them.

All numbers of a robot are in one array, in blocks of `WIDTH`: in compiled code every array that is passed or
sliced costs time. `tree[i]` is the coordinate before i on the way to the root, -1 for the first one.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.jit import jit_helper

WIDTH = 9  # coordinates at most
ENDS = 16  # ends of capsules at most
MAX_ITERATIONS = 60
ACCURATE = 1e-14  # a step smaller than this relative to u ends the iteration
FLAT = 0.02  # share of the slope that may be left when a search along a direction ends

# One number per coordinate: the problem,
FORCE, LIMIT_SIDE, LIMIT_D, LIMIT_REFERENCE = (k * WIDTH for k in range(4))  # f; 1 below, -1 above, 0 within; D; aref
# the solution (before: the first guess),
U = 4 * WIDTH
# and the solver's memory: M u - f, gradient, direction, M times the direction, rows x of limits and their change.
RESIDUAL, GRADIENT, DIRECTION, MASS_DIRECTION, LIMIT_X, LIMIT_DX = (k * WIDTH for k in range(5, 11))
# One number per contact: coordinate of its body; friction; D; aref along the normal and along the floor; x and its
# change along the direction for both; how many rows n push; whether n + mu t and n - mu t push.
BODY, FRICTION, D, REFERENCE_N, REFERENCE_T, X_N, X_T, DX_N, DX_T, LEVEL, PLUS, MINUS = (
    11 * WIDTH + k * ENDS for k in range(12)
)
# Rows of WIDTH per contact: J along the normal and along the floor.
NORMAL = 11 * WIDTH + 12 * ENDS
TANGENT = NORMAL + ENDS * WIDTH
# Matrices: lower triangles, of which only entries of a coordinate with those before it in the tree are used.
MASS = TANGENT + ENDS * WIDTH
HESSIAN = MASS + WIDTH * WIDTH
CONTACT_MEMORY = HESSIAN + WIDTH * WIDTH


@jit_helper
def multiply(at: np.ndarray, tree: np.ndarray, v: int, out: int) -> None:
    """M v; both are offsets."""
    for i in range(len(tree)):
        at[out + i] = at[MASS + WIDTH * i + i] * at[v + i]
        j = tree[i]
        while j >= 0:
            m = at[MASS + WIDTH * i + j]
            at[out + i] += m * at[v + j]
            at[out + j] += m * at[v + i]
            j = tree[j]


@jit_helper
def factorise(at: np.ndarray, tree: np.ndarray) -> None:
    """H = L' diag(d) L in place: entries below the diagonal become L, those on it 1 / d."""
    for k in range(len(tree) - 1, -1, -1):
        row = HESSIAN + WIDTH * k
        inverse = 1 / at[row + k]
        at[row + k] = inverse
        i = tree[k]
        while i >= 0:
            share = at[row + i] * inverse
            j = i
            while j >= 0:
                at[HESSIAN + WIDTH * i + j] -= share * at[row + j]
                j = tree[j]
            at[row + i] = share
            i = tree[i]


@jit_helper
def solve_factorised(at: np.ndarray, tree: np.ndarray, y: int) -> None:
    """Replace the numbers at offset y by H^-1 y, with H factorised."""
    for k in range(len(tree) - 1, -1, -1):
        i = tree[k]
        while i >= 0:
            at[y + i] -= at[HESSIAN + WIDTH * k + i] * at[y + k]
            i = tree[i]
    for k in range(len(tree)):
        t = at[y + k] * at[HESSIAN + WIDTH * k + k]
        i = tree[k]
        while i >= 0:
            t -= at[HESSIAN + WIDTH * k + i] * at[y + i]
            i = tree[i]
        at[y + k] = t


@jit_helper
def _rates(at: np.ndarray, tree: np.ndarray, c: int, u: int) -> tuple[float, float]:
    """J u of a contact, along the normal and along the floor."""
    n, t, i = 0.0, 0.0, int(at[BODY + c])
    while i >= 0:
        n += at[NORMAL + WIDTH * c + i] * at[u + i]
        t += at[TANGENT + WIDTH * c + i] * at[u + i]
        i = tree[i]
    return n, t


@jit_helper
def _find_pushing(at: np.ndarray, tree: np.ndarray, contacts: int) -> bool:
    """Find the contacts' rows that push at x + dx; returns whether they are the same as before."""
    same = True
    for c in range(contacts):
        n, y = at[X_N + c] + at[DX_N + c], at[FRICTION + c] * (at[X_T + c] + at[DX_T + c])
        level, plus, minus = 2.0 * (n < 0.0), 1.0 * (n + y < 0.0), 1.0 * (n - y < 0.0)
        same &= at[LEVEL + c] == level and at[PLUS + c] == plus and at[MINUS + c] == minus
        at[LEVEL + c], at[PLUS + c], at[MINUS + c] = level, plus, minus
    return same


@jit_helper
def _newton_direction(at: np.ndarray, tree: np.ndarray, contacts: int) -> None:
    """Gradient and Hessian at u, and the step to the minimum if the rows that push stay the same: -H^-1 g."""
    for k in range(WIDTH * WIDTH):
        at[HESSIAN + k] = at[MASS + k]
    for i in range(len(tree)):
        at[GRADIENT + i] = at[RESIDUAL + i]
        if at[LIMIT_SIDE + i] != 0.0 and at[LIMIT_X + i] < 0.0:
            at[GRADIENT + i] += at[LIMIT_SIDE + i] * at[LIMIT_D + i] * at[LIMIT_X + i]
            at[HESSIAN + WIDTH * i + i] += at[LIMIT_D + i]
    for c in range(contacts):
        d, mu, n, t = at[D + c], at[FRICTION + c], at[X_N + c], at[X_T + c]
        both, unequal = at[PLUS + c] + at[MINUS + c], at[PLUS + c] - at[MINUS + c]
        nn, nt, tt = d * (at[LEVEL + c] + both), d * mu * unequal, d * mu * mu * both
        if nn > 0.0:
            gn, gt = nn * n + nt * t, nt * n + tt * t
            i, normal, tangent = int(at[BODY + c]), NORMAL + WIDTH * c, TANGENT + WIDTH * c
            while i >= 0:
                a, b = at[normal + i], at[tangent + i]
                at[GRADIENT + i] += a * gn + b * gt
                a, b = nn * a + nt * b, nt * a + tt * b
                j = i
                while j >= 0:
                    at[HESSIAN + WIDTH * i + j] += a * at[normal + j] + b * at[tangent + j]
                    j = tree[j]
                i = tree[i]
    for i in range(len(tree)):
        at[DIRECTION + i] = -at[GRADIENT + i]
    factorise(at, tree)
    solve_factorised(at, tree, DIRECTION)


@jit_helper
def _search(at: np.ndarray, tree: np.ndarray, contacts: int) -> float:
    """How far to go along the direction: nearly to the minimum, by Newton's method within a bracket."""
    slope, curve, steepest = 0.0, 0.0, 0.0  # the first two without contacts
    for k in range(len(tree)):
        slope += at[RESIDUAL + k] * at[DIRECTION + k]
        curve += at[MASS_DIRECTION + k] * at[DIRECTION + k]
        steepest -= at[GRADIENT + k] * at[DIRECTION + k]
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(20):
        first, second = slope + t * curve, curve
        for i in range(len(tree)):
            x = at[LIMIT_X + i] + t * at[LIMIT_DX + i]
            if at[LIMIT_SIDE + i] != 0.0 and x < 0.0:
                first += at[LIMIT_D + i] * at[LIMIT_DX + i] * x
                second += at[LIMIT_D + i] * at[LIMIT_DX + i] ** 2
        for c in range(contacts):
            d, mu = at[D + c], at[FRICTION + c]
            n, dn = at[X_N + c] + t * at[DX_N + c], at[DX_N + c]
            y, dy = mu * (at[X_T + c] + t * at[DX_T + c]), mu * at[DX_T + c]
            level, plus, minus = 2.0 * d * (n < 0.0), d * (n + y < 0.0), d * (n - y < 0.0)
            first += level * dn * n + plus * (dn + dy) * (n + y) + minus * (dn - dy) * (n - y)
            second += level * dn * dn + plus * (dn + dy) ** 2 + minus * (dn - dy) ** 2
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
def solve_planar_contacts(at: np.ndarray, tree: np.ndarray, contacts: int) -> int:
    """Replace u by the solution; returns the number of iterations, or -1 if they were not enough."""
    for c in range(contacts):
        n, t = _rates(at, tree, c, U)
        at[X_N + c], at[X_T + c] = n - at[REFERENCE_N + c], t - at[REFERENCE_T + c]
        at[DX_N + c] = at[DX_T + c] = 0.0
    multiply(at, tree, U, RESIDUAL)
    for i in range(len(tree)):
        at[RESIDUAL + i] -= at[FORCE + i]
        at[LIMIT_X + i] = at[LIMIT_SIDE + i] * at[U + i] - at[LIMIT_REFERENCE + i]
    _find_pushing(at, tree, contacts)
    for iteration in range(MAX_ITERATIONS):
        _newton_direction(at, tree, contacts)
        for c in range(contacts):
            at[DX_N + c], at[DX_T + c] = _rates(at, tree, c, DIRECTION)
        same, t = _find_pushing(at, tree, contacts), 1.0
        for i in range(len(tree)):
            at[LIMIT_DX + i] = at[LIMIT_SIDE + i] * at[DIRECTION + i]
            same &= (at[LIMIT_X + i] < 0.0) == (at[LIMIT_X + i] + at[LIMIT_DX + i] < 0.0)
        if not same:
            multiply(at, tree, DIRECTION, MASS_DIRECTION)
            t = _search(at, tree, contacts)
        largest, change = 0.0, 0.0
        for i in range(len(tree)):
            at[U + i] += t * at[DIRECTION + i]
            largest, change = max(largest, abs(at[U + i])), max(change, abs(at[DIRECTION + i]))
        if same or change <= ACCURATE * largest:
            return iteration + 1
        if not math.isfinite(change):
            return -1
        for i in range(len(tree)):
            at[RESIDUAL + i] += t * at[MASS_DIRECTION + i]
            at[LIMIT_X + i] += t * at[LIMIT_DX + i]
        for c in range(contacts):
            at[X_N + c] += t * at[DX_N + c]
            at[X_T + c] += t * at[DX_T + c]
            at[DX_N + c] = at[DX_T + c] = 0.0
        if t != 1.0:
            _find_pushing(at, tree, contacts)
    return -1
