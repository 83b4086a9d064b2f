"""The margin's guarantee: the limit is exceeded as often as asked for (Gibbs and Candes, 2021, Proposition 4.1).

Not a statement of the paper: it is what `--violations` promises. The policies of a run are mixtures of the safest and
the costliest policy of a CMDP, each with its exact J_C. An iteration takes the costliest one that the margin allows
and measures J_C with noise that is larger than the reported standard error says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashbulb.config import MarginConfig
from flashbulb.theory.actual_step import margin_run
from flashbulb.theory.cases import StatementCheck, check_slacks, draw_cmdp
from flashbulb.theory.cmdp import TabularCMDP, expected_sum, least_cost_q

ITERATIONS, MIXTURES = 2000, 128
CONFIG = MarginConfig(maximum=6.0, share=1.0)


class ViolationRun(NamedTuple):
    target: float
    limit: float
    costs: np.ndarray  # (N,) measured
    z: np.ndarray  # (N + 1,) before each iteration, and after the last


def mixture_costs(cmdp: TabularCMDP) -> np.ndarray:
    """J_C of policies from the safest to the costliest, ascending."""
    safest, costliest = (np.eye(cmdp.actions)[least_cost_q(cmdp, sign * cmdp.cost).argmin(1)] for sign in (1, -1))
    weights = np.linspace(0, 1, MIXTURES)
    return np.sort([expected_sum(cmdp, (1 - w) * safest + w * costliest, cmdp.cost) for w in weights])


def draw_noise(rng: np.random.Generator) -> np.ndarray:
    """Of unit size: Gaussian, skewed, or with a mean and a spread that drift."""
    time = np.linspace(0, 1, ITERATIONS)
    gaussian, kind = rng.standard_normal(ITERATIONS), rng.integers(3)
    if kind == 0:
        return gaussian
    return rng.exponential(1, ITERATIONS) - 1 if kind == 1 else (0.7 + 0.5 * time) * gaussian + 0.5 * np.sin(3 * time)


def violation_runs(count: int, seed: int, config: MarginConfig = CONFIG) -> Iterator[ViolationRun]:
    for rng in np.random.default_rng(seed).spawn(count):
        possible = np.zeros(1)
        while np.ptp(possible) < 1e-2:  # a CMDP on which the policy decides about the cost
            possible = mixture_costs(draw_cmdp(rng))
        spread = float(np.ptp(possible))
        size = spread * rng.uniform(0.03, 0.1)
        target, limit = float(rng.choice([0.05, 0.1, 0.15])), float(possible[0] + rng.uniform(0.7, 0.9) * spread)
        reported = size * rng.uniform(0.5, 0.9)
        yield ViolationRun(
            target, limit, *margin_run(possible, size * draw_noise(rng), reported, limit, target, config)
        )


def frequency_slack(run: ViolationRun, config: MarginConfig = CONFIG) -> float:
    """z_max / (rate n) minus the distance of frequency and target, over the n iterations before z is clipped."""
    clipped = (run.z[1:] <= 0) | (run.z[1:] >= config.maximum)
    n = int(clipped.argmax()) if clipped.any() else len(run.costs)
    if n == 0:
        return float("nan")
    frequency = (run.costs[:n] > np.float32(run.limit)).mean()
    return config.maximum / (config.rate * n) - abs(frequency - run.target)


def violation_frequency(cases: int, seed: int) -> StatementCheck:
    slacks = [frequency_slack(run) for run in violation_runs(cases // 4, seed)]
    statement = "violations as often as asked, within z_max/(rate N) while 0 < z < z_max"
    return check_slacks("ACI, 4.1", statement, slacks)
