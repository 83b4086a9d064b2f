"""The closed form of Appendix A.1 against the geometry of its problem.

Maximise g.x subject to c + b.x <= 0 and x.H.x / 2 <= phi. In coordinates where H is the identity this is the
furthest point of a ball cut by a half-space, which needs no multipliers to find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from flashbulb.theory.actual_step import closed_form_step
from flashbulb.theory.cases import StatementCheck, check_slacks

SINGLE = 1e-4  # relative; training's solution is in single precision


class Programme(NamedTuple):
    g: np.ndarray
    b: np.ndarray
    c: float
    hessian: np.ndarray
    region: float  # phi


def draw_programmes(count: int, seed: int) -> Iterator[Programme]:
    """Feasible programmes from inside and outside the limit; feasible also in the smaller ball of the printed dual.

    Gradients at an angle below ten degrees are drawn again: their difference is lost in single precision.
    """
    drawn = 0
    rng = np.random.default_rng(seed)
    while drawn < count:
        root = rng.standard_normal((5, 5)) + 2 * np.eye(5)
        g, b, region = rng.standard_normal(5), rng.standard_normal(5), float(rng.choice([0.01, 0.1]))
        hessian = root @ root.T
        q, u, v = (x @ np.linalg.solve(hessian, y) for x, y in ((g, g), (g, b), (b, b)))
        if u**2 > 0.97 * q * v:
            continue
        drawn += 1
        yield Programme(g, b, float(np.sqrt(2 * region * v) * rng.uniform(-0.65, 0.65)), hessian, region)


def furthest_point(p: Programme) -> np.ndarray:
    root = np.linalg.cholesky(p.hessian)
    g, b = np.linalg.solve(root, p.g), np.linalg.solve(root, p.b)
    y = np.sqrt(2 * p.region) * g / np.linalg.norm(g)
    if p.c + b @ y > 0:  # the optimum of the ball is infeasible: the best point is where plane and sphere meet
        foot = -p.c * b / (b @ b)
        along = g - (g @ b) / (b @ b) * b
        y = foot + np.sqrt(2 * p.region - foot @ foot) * along / np.linalg.norm(along)
    return np.linalg.solve(root.T, y)


def shortfall(p: Programme, x: np.ndarray) -> float:
    """The smallest of: distance to the limit, to the trust region, and gain minus the best gain (all relative)."""
    best = p.g @ furthest_point(p)
    size = np.sqrt(2 * p.region * (p.b @ np.linalg.solve(p.hessian, p.b)))
    room = -(p.c + p.b @ x) / size
    inside = 1 - x @ p.hessian @ x / (2 * p.region)
    span = np.sqrt(2 * p.region * (p.g @ np.linalg.solve(p.hessian, p.g)))
    return float(min(room, inside, (p.g @ x - best) / span))


def _by_multipliers(p: Programme, u_sign: float, ball: float) -> np.ndarray:
    """lambda by search over the printed dual with `ball` for its phi, nu = (lambda c + u_sign u)_+ / v."""
    h_g, h_b = np.linalg.solve(p.hessian, p.g), np.linalg.solve(p.hessian, p.b)
    q, u, v = p.g @ h_g, u_sign * (p.g @ h_b), p.b @ h_b

    def dual(log_lam: float) -> float:
        lam = np.exp(log_lam)
        nu = max(0.0, (lam * p.c + u) / v)
        return (q - 2 * nu * u + nu**2 * v) / (2 * lam) - nu * p.c + lam * ball / 2

    lam = np.exp(minimize_scalar(dual, bounds=(-15, 15), method="bounded", options={"xatol": 1e-10}).x)
    return (h_g - max(0.0, (lam * p.c + u) / v) * h_b) / lam


def _check_solver(
    statement: str, solver: Callable[[Programme], np.ndarray], count: int, seed: int, expected: bool
) -> StatementCheck:
    slacks = [shortfall(p, solver(p)) for p in draw_programmes(count, seed)]
    return check_slacks("App. A.1", statement, slacks, expected, SINGLE)


def dual_printed(count: int, seed: int) -> StatementCheck:
    statement = "as printed: nu = (lambda c - u)_+/v, dual with phi: solves the step"
    return _check_solver(statement, lambda p: _by_multipliers(p, -1.0, p.region), count, seed, False)


def dual_sign_corrected(count: int, seed: int) -> StatementCheck:
    """Feasible, but it stops at half the trust region: phi in place of 2 phi."""
    statement = "nu = (lambda c + u)_+/v, dual with phi: solves the step"
    return _check_solver(statement, lambda p: _by_multipliers(p, 1.0, p.region), count, seed, False)


def dual_corrected(count: int, seed: int) -> StatementCheck:
    statement = "corrected: nu = (lambda c + u)_+/v, dual with 2 phi: solves the step"
    return _check_solver(statement, lambda p: _by_multipliers(p, 1.0, 2 * p.region), count, seed, True)


def dual_of_training(count: int, seed: int) -> StatementCheck:
    def solve(p: Programme) -> np.ndarray:
        h_g, h_b = np.linalg.solve(p.hessian, p.g), np.linalg.solve(p.hessian, p.b)
        return closed_form_step(h_g, h_b, p.g, p.b, p.c, p.region)

    return _check_solver("training's solve_dual and primal_step solve the step", solve, count, seed, True)
