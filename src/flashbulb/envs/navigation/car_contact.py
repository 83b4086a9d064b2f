"""The Car's contact problem: the accelerations that MuJoCo's convex contact model gives it on the floor.

MuJoCo's acceleration u minimises (u - u0)' M (u - u0) / 2 + sum over rows of D min(0, J u - aref)^2 / 2, where u0 is
the acceleration without contacts: M u0 = f. Each contact has ten rows, the edges of its friction pyramid: x_n + mu_k
x_k and x_n - mu_k x_k, where x = J u - aref in the contact's axes: n is the normal, and k one of two slides, two rolls
and the twist about n. Between the points where rows change sign the function is quadratic, so Newton's method arrives
at the minimum as soon as it has the right rows.

All vectors are in world axes. The unknowns are u = (a, alpha, s_left, s_right, sigma): acceleration of the robot's
origin, its angular acceleration, those of the wheels about their hinges, and that of the ball relative to the world.
So the ball is coupled to the robot by its centre's acceleration alone, and a hinge by its wheel's contacts alone: both
are eliminated, and a matrix of 6 x 6 is left to factorise. (Loops over full matrices are shorter and take three times
as long.)

All numbers of a Car are in one array: in compiled code, every array that is passed or sliced costs time.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.contact_model import narrow
from flashbulb.jit import jit_helper

SLIDE, ROLL, TWIST = 1.0, 0.0001, 0.005  # friction coefficients of all contacts
MAX_ITERATIONS = 60
ACCURATE = 1e-14  # a step smaller than this relative to u ends the iteration
FLAT = 0.02  # share of the slope that may be left when a search along a direction ends

N = 11  # unknowns
A, ALPHA, HINGES, SIGMA = 0, 3, 6, 8  # offsets in u
# Five possible contacts: the ends of the left and of the right wheel, and the ball. Each has its stiffness D (0 if it
# does not touch); its point relative to the robot's origin (the ball: its centre); the velocity of the point per rate
# of the hinge (the ball: the distance of the point below its centre); and -aref in the order n, slides along x and y,
# rolls about x and y, twist.
CONTACTS, BALL, AXES = 5, 4, 6
D, POINT, LEVER, REFERENCE, CONTACT_SIZE = 0, 1, 4, 7, 13

# The array: the problem,
MASS, WHEEL, BALL_INERTIA = 0, 1, 2  # mass; moment of inertia of a wheel about its hinge, and of the ball
AXLE, FIRST = 3, 6  # direction of both hinges; mass times centre of mass relative to the origin
INERTIA = 9  # about the origin, xx, yy, zz, xy, xz, yz: wheels are part of the body, the ball is a point
FORCE = 15  # f
CONTACT = FORCE + N
# the solution (before: the first guess),
U = CONTACT + CONTACTS * CONTACT_SIZE
# and the solver's memory.
X = U + N  # J u - aref of each contact, times the friction coefficient
DX = X + AXES * CONTACTS  # its change along the search direction
BOTH = DX + AXES * CONTACTS  # of the two rows of each k: how many are negative, that is, push;
UNEQUAL = BOTH + AXES * CONTACTS  # and those with plus less those with minus
RESIDUAL = UNEQUAL + AXES * CONTACTS  # M u - f
GRADIENT = RESIDUAL + N
DIRECTION = GRADIENT + N
MASS_DIRECTION = DIRECTION + N  # M times the direction
HESSIAN = MASS_DIRECTION + N  # 6 x 6, of (a, alpha): lower triangle
COUPLING = HESSIAN + 36  # of each hinge with (a, alpha), and with itself
BALL_X, BALL_Y, BALL_Z = COUPLING + 14, COUPLING + 17, COUPLING + 20  # of sigma with the ball's centre; 1 / with itself
CONTACT_MEMORY = COUPLING + 22


@jit_helper
def contact_rates(at: np.ndarray, c: int, u: int, out: int) -> None:
    """J u of contact c; `u` and `out` are offsets, and u may hold velocities or accelerations."""
    p = CONTACT + c * CONTACT_SIZE
    px, py, pz = at[p + POINT], at[p + POINT + 1], at[p + POINT + 2]
    rx, ry, rz = at[u + ALPHA], at[u + ALPHA + 1], at[u + ALPHA + 2]
    x = at[u] + ry * pz - rz * py
    y = at[u + 1] + rz * px - rx * pz
    z = at[u + 2] + rx * py - ry * px
    if c == BALL:
        below = at[p + LEVER]
        rx, ry, rz = at[u + SIGMA], at[u + SIGMA + 1], at[u + SIGMA + 2]
        x -= below * ry
        y += below * rx
    else:
        s = at[u + HINGES + c // 2]
        x += at[p + LEVER] * s
        y += at[p + LEVER + 1] * s
        z += at[p + LEVER + 2] * s
        rx, ry, rz = rx + at[AXLE] * s, ry + at[AXLE + 1] * s, rz + at[AXLE + 2] * s
    at[out], at[out + 1], at[out + 2] = z, x, y
    at[out + 3], at[out + 4], at[out + 5] = rx, ry, rz


@jit_helper
def _scale(at: np.ndarray, x: int) -> None:
    at[x + 1] *= SLIDE
    at[x + 2] *= SLIDE
    at[x + 3] *= ROLL
    at[x + 4] *= ROLL
    at[x + 5] *= TWIST


@jit_helper
def _multiply_mass(at: np.ndarray, u: int, out: int) -> None:
    """M u; both are offsets."""
    mass, wheel = at[MASS], at[WHEEL]
    h0, h1, h2 = at[FIRST], at[FIRST + 1], at[FIRST + 2]
    e0, e1, e2 = at[AXLE], at[AXLE + 1], at[AXLE + 2]
    ax, ay, az = at[u], at[u + 1], at[u + 2]
    rx, ry, rz = at[u + 3], at[u + 4], at[u + 5]
    xx, yy, zz = at[INERTIA], at[INERTIA + 1], at[INERTIA + 2]
    xy, xz, yz = at[INERTIA + 3], at[INERTIA + 4], at[INERTIA + 5]
    spin, along = wheel * (at[u + 6] + at[u + 7]), e0 * rx + e1 * ry + e2 * rz
    at[out] = mass * ax + ry * h2 - rz * h1
    at[out + 1] = mass * ay + rz * h0 - rx * h2
    at[out + 2] = mass * az + rx * h1 - ry * h0
    at[out + 3] = xx * rx + xy * ry + xz * rz + h1 * az - h2 * ay + e0 * spin
    at[out + 4] = xy * rx + yy * ry + yz * rz + h2 * ax - h0 * az + e1 * spin
    at[out + 5] = xz * rx + yz * ry + zz * rz + h0 * ay - h1 * ax + e2 * spin
    for k in range(HINGES, SIGMA):
        at[out + k] = wheel * (at[u + k] + along)
    for k in range(SIGMA, N):
        at[out + k] = at[BALL_INERTIA] * at[u + k]


@jit_helper
def _start_hessian(at: np.ndarray) -> None:
    """M, in its blocks."""
    h, first = HESSIAN, FIRST
    for k in range(36):
        at[h + k] = 0.0
    for k in range(3):
        at[h + 7 * k], at[h + 21 + 7 * k] = at[MASS], at[INERTIA + k]
    at[h + 27], at[h + 33], at[h + 34] = at[INERTIA + 3], at[INERTIA + 4], at[INERTIA + 5]
    at[h + 26], at[h + 31] = -at[first], at[first]
    at[h + 30], at[h + 20] = -at[first + 1], at[first + 1]
    at[h + 19], at[h + 24] = -at[first + 2], at[first + 2]
    for k in range(3):
        at[COUPLING + k] = at[COUPLING + 7 + k] = 0.0
        at[COUPLING + 3 + k] = at[COUPLING + 10 + k] = at[WHEEL] * at[AXLE + k]
    at[COUPLING + 6] = at[COUPLING + 13] = at[WHEEL]


@jit_helper
def _add_contact(at: np.ndarray, c: int) -> None:
    """Add a contact's rows to gradient and Hessian; the ball's sigma are eliminated here."""
    p, s = CONTACT + c * CONTACT_SIZE, X + AXES * c
    n, e = BOTH + AXES * c, UNEQUAL + AXES * c
    d, z = at[p + D], at[s]
    # Derivatives in the contact's axes. Second: of n, of n with each k (zx to lz), of each k (xx to kz).
    zz, gz = 0.0, 0.0
    for k in range(1, AXES):
        zz += d * at[n + k]
        gz += d * (at[n + k] * z + at[e + k] * at[s + k])
    zx, zy = d * SLIDE * at[e + 1], d * SLIDE * at[e + 2]
    lx, ly, lz = d * ROLL * at[e + 3], d * ROLL * at[e + 4], d * TWIST * at[e + 5]
    xx, yy = d * SLIDE**2 * at[n + 1], d * SLIDE**2 * at[n + 2]
    kx, ky, kz = d * ROLL**2 * at[n + 3], d * ROLL**2 * at[n + 4], d * TWIST**2 * at[n + 5]
    # First; the array's x_k is mu_k x_k.
    gx, gy = zx * z + d * SLIDE * at[n + 1] * at[s + 1], zy * z + d * SLIDE * at[n + 2] * at[s + 2]
    hx, hy = lx * z + d * ROLL * at[n + 3] * at[s + 3], ly * z + d * ROLL * at[n + 4] * at[s + 4]
    hz = lz * z + d * TWIST * at[n + 5] * at[s + 5]
    px, py, pz = at[p + POINT], at[p + POINT + 1], at[p + POINT + 2]
    g = GRADIENT
    at[g] += gx
    at[g + 1] += gy
    at[g + 2] += gz
    at[g + 3] += py * gz - pz * gy
    at[g + 4] += pz * gx - px * gz
    at[g + 5] += px * gy - py * gx
    if c == BALL:
        below, own = at[p + LEVER], at[BALL_INERTIA]
        at[g + 8] += below * gy + hx
        at[g + 9] += hy - below * gx
        at[g + 10] += hz
        # sigma_x moves the point along y, sigma_y along -x, so they are not coupled with each other
        xy, xz = below * yy, below * zy + lx
        yx, yz = -below * xx, ly - below * zx
        i0, i1, i2 = 1 / (own + below * xy + kx), 1 / (own - below * yx + ky), 1 / (own + kz)
        at[BALL_X], at[BALL_X + 1], at[BALL_X + 2] = xy, xz, i0
        at[BALL_Y], at[BALL_Y + 1], at[BALL_Y + 2] = yx, yz, i1
        at[BALL_Z], at[BALL_Z + 1] = lz, i2
        zz -= xz * xz * i0 + yz * yz * i1 + lz * lz * i2
        xx, yy = xx - yx * yx * i1, yy - xy * xy * i0
        zx, zy = zx - yx * yz * i1, zy - xy * xz * i0
        lx = ly = lz = kx = ky = kz = 0.0
    else:
        ex, ey, ez = at[AXLE], at[AXLE + 1], at[AXLE + 2]
        wx, wy, wz = at[p + LEVER], at[p + LEVER + 1], at[p + LEVER + 2]
        at[g + 3] += hx
        at[g + 4] += hy
        at[g + 5] += hz
        at[g + HINGES + c // 2] += wx * gx + wy * gy + wz * gz + ex * hx + ey * hy + ez * hz
        turn = lx * ex + ly * ey + lz * ez
        fx, fy, fz = xx * wx + zx * wz, yy * wy + zy * wz, zx * wx + zy * wy + zz * wz + turn
        b = COUPLING + 7 * (c // 2)
        at[b] += fx
        at[b + 1] += fy
        at[b + 2] += fz
        at[b + 3] += py * fz - pz * fy + lx * wz + kx * ex
        at[b + 4] += pz * fx - px * fz + ly * wz + ky * ey
        at[b + 5] += px * fy - py * fx + lz * wz + kz * ez
        at[b + 6] += wx * fx + wy * fy + wz * (fz + turn) + kx * ex * ex + ky * ey * ey + kz * ez * ez
    # The point's velocity is a + T alpha, T = ((0, pz, -py), (-pz, 0, px), (py, -px, 0)). With K of the entries xx to
    # zy and l = (lx, ly, lz): B = K T + z l' couples a and alpha, and alpha with itself T' B + l (T' z)' + diag(k).
    b00, b01, b02 = zx * py, xx * pz - zx * px, -xx * py
    b10, b11, b12 = -yy * pz + zy * py, -zy * px, yy * px
    b20, b21, b22 = -zy * pz + zz * py + lx, zx * pz - zz * px + ly, -zx * py + zy * px + lz
    h = HESSIAN
    at[h] += xx
    at[h + 7] += yy
    at[h + 12] += zx
    at[h + 13] += zy
    at[h + 14] += zz
    at[h + 18] += b00
    at[h + 19] += b10
    at[h + 20] += b20
    at[h + 24] += b01
    at[h + 25] += b11
    at[h + 26] += b21
    at[h + 30] += b02
    at[h + 31] += b12
    at[h + 32] += b22
    at[h + 21] += -pz * b10 + py * b20 + lx * py + kx
    at[h + 27] += pz * b00 - px * b20 + ly * py
    at[h + 33] += -py * b00 + px * b10 + lz * py
    at[h + 28] += pz * b01 - px * b21 - ly * px + ky
    at[h + 34] += -py * b01 + px * b11 - lz * px
    at[h + 35] += -py * b02 + px * b12 + kz


@jit_helper
def _newton_direction(at: np.ndarray) -> None:
    """Gradient and Hessian at u, and the step to the minimum if the rows that push stay the same: -H^-1 g."""
    g, y, h = GRADIENT, DIRECTION, HESSIAN
    for k in range(N):
        at[g + k] = at[RESIDUAL + k]
    _start_hessian(at)
    for c in range(CONTACTS):
        if at[CONTACT + c * CONTACT_SIZE + D] > 0.0:
            _add_contact(at, c)
    for k in range(6):
        at[y + k] = -at[g + k]
    p = CONTACT + BALL * CONTACT_SIZE
    px, py, pz = at[p + POINT], at[p + POINT + 1], at[p + POINT + 2]
    if at[p + D] > 0.0:  # the eliminated sigma act on the ball's centre
        q0, q1, q2 = at[g + 8] * at[BALL_X + 2], at[g + 9] * at[BALL_Y + 2], at[g + 10] * at[BALL_Z + 1]
        fx, fy, fz = at[BALL_Y] * q1, at[BALL_X] * q0, at[BALL_X + 1] * q0 + at[BALL_Y + 1] * q1 + at[BALL_Z] * q2
        at[y] += fx
        at[y + 1] += fy
        at[y + 2] += fz
        at[y + 3] += py * fz - pz * fy
        at[y + 4] += pz * fx - px * fz
        at[y + 5] += px * fy - py * fx
    for s in range(2):
        b = COUPLING + 7 * s
        inverse = 1 / at[b + 6]
        for j in range(6):
            t = at[b + j] * inverse
            at[y + j] += t * at[g + HINGES + s]
            for k in range(j + 1):
                at[h + 6 * j + k] -= t * at[b + k]
    _solve(at)
    for s in range(2):
        b = COUPLING + 7 * s
        t = at[g + HINGES + s]
        for j in range(6):
            t += at[b + j] * at[y + j]
        at[y + HINGES + s] = -t / at[b + 6]
    if at[p + D] > 0.0:
        fx = at[y] + at[y + 4] * pz - at[y + 5] * py
        fy = at[y + 1] + at[y + 5] * px - at[y + 3] * pz
        fz = at[y + 2] + at[y + 3] * py - at[y + 4] * px
        at[y + 8] = -(at[g + 8] + at[BALL_X] * fy + at[BALL_X + 1] * fz) * at[BALL_X + 2]
        at[y + 9] = -(at[g + 9] + at[BALL_Y] * fx + at[BALL_Y + 1] * fz) * at[BALL_Y + 2]
        at[y + 10] = -(at[g + 10] + at[BALL_Z] * fz) * at[BALL_Z + 1]
    else:
        for k in range(SIGMA, N):
            at[y + k] = -at[g + k] / at[BALL_INERTIA]


@jit_helper
def _solve(at: np.ndarray) -> None:
    """Replace the first six numbers y of the direction by H^-1 y.

    H = L diag(d) L' is factorised in place; entries below the diagonal become L d, and those on it 1 / d.
    """
    h, y = HESSIAN, DIRECTION
    for j in range(6):
        for i in range(j, 6):
            t = at[h + 6 * i + j]
            for k in range(j):
                t -= at[h + 6 * i + k] * at[h + 6 * j + k] * at[h + 7 * k]
            at[h + 6 * i + j] = t
        at[h + 7 * j] = 1 / at[h + 7 * j]
    for i in range(6):
        for k in range(i):
            at[y + i] -= at[h + 6 * i + k] * at[h + 7 * k] * at[y + k]
    for i in range(5, -1, -1):
        t = at[y + i]
        for k in range(i + 1, 6):
            t -= at[h + 6 * k + i] * at[y + k]
        at[y + i] = t * at[h + 7 * i]


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
            d = at[CONTACT + c * CONTACT_SIZE + D]
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
        low, high, t = narrow(low, high, t, first, second)
    return t


@jit_helper
def _count_pushing(at: np.ndarray) -> bool:
    """Count the rows that push at X + DX; returns whether they are the same as before."""
    same = True
    for c in range(CONTACTS):
        if at[CONTACT + c * CONTACT_SIZE + D] > 0.0:
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
        p, x = CONTACT + c * CONTACT_SIZE, X + AXES * c
        if at[p + D] > 0.0:
            contact_rates(at, c, U, x)
            for k in range(AXES):
                at[x + k] += at[p + REFERENCE + k]
                at[DX + AXES * c + k] = 0.0
            _scale(at, x)
    _multiply_mass(at, U, RESIDUAL)
    for k in range(N):
        at[RESIDUAL + k] -= at[FORCE + k]
    _count_pushing(at)
    for iteration in range(MAX_ITERATIONS):
        _newton_direction(at)
        for c in range(CONTACTS):
            if at[CONTACT + c * CONTACT_SIZE + D] > 0.0:
                contact_rates(at, c, DIRECTION, DX + AXES * c)
                _scale(at, DX + AXES * c)
        same, t = _count_pushing(at), 1.0
        if not same:
            _multiply_mass(at, DIRECTION, MASS_DIRECTION)
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
