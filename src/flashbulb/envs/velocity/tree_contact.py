"""The contact problem of a robot on the floor: the accelerations that MuJoCo's convex model of contacts gives it.

MuJoCo's acceleration u minimises (u - u0)' M (u - u0) / 2 + sum over rows of D min(0, x)^2 / 2, where x = J u - aref
and u0 is the acceleration without contacts: M u0 = f. A joint beyond its limit is one row. A sphere or a capsule's end
on the floor is four, the edges of its friction pyramid: n + mu t, n - mu t, n + mu s and n - mu s, for the normal n and
the slides t and s. Between the points where rows change sign the function is quadratic, so Newton's method arrives at
the minimum as soon as it has the right rows.

A contact with the floor couples only the coordinates between a body and the root, as the mass matrix does. So the
Hessian has the mass matrix's zeros, and eliminating from the tips of the legs to the root keeps them.

All numbers of a robot are in one array, in blocks of `WIDTH`: in compiled code every array that is passed or
sliced costs time. `tree[i]` is the coordinate before i on the way to the root, -1 for the first one.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.contact_model import narrow
from flashbulb.jit import jit_helper

WIDTH = 14  # coordinates at most
ENDS = 25  # contacts with the floor at most
MAX_ITERATIONS = 60
ACCURATE = 1e-14  # a step smaller than this relative to u ends the iteration
FLAT = 0.02  # share of the slope that may be left when a search along a direction ends

# One number per coordinate: the problem,
FORCE, LIMIT_SIDE, LIMIT_D, LIMIT_REFERENCE = (k * WIDTH for k in range(4))  # f; 1 below, -1 above, 0 within; D; aref
# the solution (before: the first guess),
U = 4 * WIDTH
# and the solver's memory: M u - f, gradient, direction, M times the direction, rows x of limits and their change.
RESIDUAL, GRADIENT, DIRECTION, MASS_DIRECTION, LIMIT_X, LIMIT_DX = (k * WIDTH for k in range(5, 11))
# One number per contact: coordinate of its body, friction, D,
BODY, FRICTION, D = (11 * WIDTH + k * ENDS for k in range(3))
# aref, x and its change along the direction, each of the normal n and the slides t and s;
REFERENCE_N, REFERENCE_T, REFERENCE_S, X_N, X_T, X_S, DX_N, DX_T, DX_S = (11 * WIDTH + k * ENDS for k in range(3, 12))
# whether the rows n + mu t, n - mu t, n + mu s and n - mu s push.
PLUS_T, MINUS_T, PLUS_S, MINUS_S = (11 * WIDTH + k * ENDS for k in range(12, 16))
# Rows of WIDTH per contact: J along the normal and the slides.
NORMAL, TANGENT, SIDE = (11 * WIDTH + 16 * ENDS + k * ENDS * WIDTH for k in range(3))
# Matrices: lower triangles, of which only entries of a coordinate with those before it in the tree are used.
MASS = SIDE + ENDS * WIDTH
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
def start_hessian(at: np.ndarray, tree: np.ndarray) -> None:
    """H = M."""
    for i in range(len(tree)):
        for j in range(i + 1):
            at[HESSIAN + WIDTH * i + j] = at[MASS + WIDTH * i + j]


@jit_helper
def _rates(at: np.ndarray, tree: np.ndarray, c: int, u: int) -> tuple[float, float, float]:
    """J u of a contact, along the normal and the slides."""
    n, t, s, i, row = 0.0, 0.0, 0.0, int(at[BODY + c]), WIDTH * c
    while i >= 0:
        n += at[NORMAL + row + i] * at[u + i]
        t += at[TANGENT + row + i] * at[u + i]
        s += at[SIDE + row + i] * at[u + i]
        i = tree[i]
    return n, t, s


@jit_helper
def _find_pushing(at: np.ndarray, contacts: int) -> bool:
    """Find the contacts' rows that push at x + dx; returns whether they are the same as before."""
    same = True
    for c in range(contacts):
        n, mu = at[X_N + c] + at[DX_N + c], at[FRICTION + c]
        t, s = mu * (at[X_T + c] + at[DX_T + c]), mu * (at[X_S + c] + at[DX_S + c])
        a, b, d, e = 1.0 * (n + t < 0.0), 1.0 * (n - t < 0.0), 1.0 * (n + s < 0.0), 1.0 * (n - s < 0.0)
        same &= at[PLUS_T + c] == a and at[MINUS_T + c] == b and at[PLUS_S + c] == d and at[MINUS_S + c] == e
        at[PLUS_T + c], at[MINUS_T + c], at[PLUS_S + c], at[MINUS_S + c] = a, b, d, e
    return same


@jit_helper
def _add_contact(at: np.ndarray, tree: np.ndarray, c: int) -> None:
    """Add a contact's rows to gradient and Hessian."""
    d, mu, n, t, s = at[D + c], at[FRICTION + c], at[X_N + c], at[X_T + c], at[X_S + c]
    both_t, both_s = at[PLUS_T + c] + at[MINUS_T + c], at[PLUS_S + c] + at[MINUS_S + c]
    if both_t + both_s == 0.0:
        return
    nt, ns = d * mu * (at[PLUS_T + c] - at[MINUS_T + c]), d * mu * (at[PLUS_S + c] - at[MINUS_S + c])
    nn, tt, ss = d * (both_t + both_s), d * mu * mu * both_t, d * mu * mu * both_s
    gn, gt, gs = nn * n + nt * t + ns * s, nt * n + tt * t, ns * n + ss * s
    i, normal, tangent, side = int(at[BODY + c]), NORMAL + WIDTH * c, TANGENT + WIDTH * c, SIDE + WIDTH * c
    while i >= 0:
        x, y, z = at[normal + i], at[tangent + i], at[side + i]
        at[GRADIENT + i] += x * gn + y * gt + z * gs
        x, y, z = nn * x + nt * y + ns * z, nt * x + tt * y, ns * x + ss * z
        j, row = i, HESSIAN + WIDTH * i
        while j >= 0:
            at[row + j] += x * at[normal + j] + y * at[tangent + j] + z * at[side + j]
            j = tree[j]
        i = tree[i]


@jit_helper
def _newton_direction(at: np.ndarray, tree: np.ndarray, contacts: int) -> None:
    """Gradient and Hessian at u, and the step to the minimum if the rows that push stay the same: -H^-1 g."""
    start_hessian(at, tree)
    for i in range(len(tree)):
        at[GRADIENT + i] = at[RESIDUAL + i]
        if at[LIMIT_SIDE + i] != 0.0 and at[LIMIT_X + i] < 0.0:
            at[GRADIENT + i] += at[LIMIT_SIDE + i] * at[LIMIT_D + i] * at[LIMIT_X + i]
            at[HESSIAN + WIDTH * i + i] += at[LIMIT_D + i]
    for c in range(contacts):
        _add_contact(at, tree, c)
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
            for x, dx in ((X_T, DX_T), (X_S, DX_S)):
                y, dy = mu * (at[x + c] + t * at[dx + c]), mu * at[dx + c]
                plus, minus = d * (dn + dy) * (n + y < 0.0), d * (dn - dy) * (n - y < 0.0)
                first += plus * (n + y) + minus * (n - y)
                second += plus * (dn + dy) + minus * (dn - dy)
        if abs(first) <= FLAT * steepest:
            break
        low, high, t = narrow(low, high, t, first, second)
    return t


@jit_helper
def solve_tree_contacts(at: np.ndarray, tree: np.ndarray, contacts: int) -> int:
    """Replace u by the solution; returns the number of iterations, or -1 if they were not enough."""
    for c in range(contacts):
        n, t, s = _rates(at, tree, c, U)
        at[X_N + c], at[X_T + c] = n - at[REFERENCE_N + c], t - at[REFERENCE_T + c]
        at[X_S + c] = s - at[REFERENCE_S + c]
        at[DX_N + c] = at[DX_T + c] = at[DX_S + c] = 0.0
    multiply(at, tree, U, RESIDUAL)
    for i in range(len(tree)):
        at[RESIDUAL + i] -= at[FORCE + i]
        at[LIMIT_X + i] = at[LIMIT_SIDE + i] * at[U + i] - at[LIMIT_REFERENCE + i]
    _find_pushing(at, contacts)
    for iteration in range(MAX_ITERATIONS):
        _newton_direction(at, tree, contacts)
        for c in range(contacts):
            at[DX_N + c], at[DX_T + c], at[DX_S + c] = _rates(at, tree, c, DIRECTION)
        same, step = _find_pushing(at, contacts), 1.0
        for i in range(len(tree)):
            at[LIMIT_DX + i] = at[LIMIT_SIDE + i] * at[DIRECTION + i]
            same &= (at[LIMIT_X + i] < 0.0) == (at[LIMIT_X + i] + at[LIMIT_DX + i] < 0.0)
        if not same:
            multiply(at, tree, DIRECTION, MASS_DIRECTION)
            step = _search(at, tree, contacts)
        largest, change = 0.0, 0.0
        for i in range(len(tree)):
            at[U + i] += step * at[DIRECTION + i]
            largest, change = max(largest, abs(at[U + i])), max(change, abs(at[DIRECTION + i]))
        if same or change <= ACCURATE * largest:
            return iteration + 1
        if not math.isfinite(change):
            return -1
        for i in range(len(tree)):
            at[RESIDUAL + i] += step * at[MASS_DIRECTION + i]
            at[LIMIT_X + i] += step * at[LIMIT_DX + i]
        for c in range(contacts):
            at[X_N + c] += step * at[DX_N + c]
            at[X_T + c] += step * at[DX_T + c]
            at[X_S + c] += step * at[DX_S + c]
            at[DX_N + c] = at[DX_T + c] = at[DX_S + c] = 0.0
        if step != 1.0:
            _find_pushing(at, contacts)
    return -1
