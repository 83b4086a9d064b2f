"""Theorem 3: with the factor gamma^n, extrinsic-intrinsic Q-learning converges to Q*_C."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flashbulb.config import BalanceConfig, MemoryConfig
from flashbulb.theory.cases import StatementCheck, check_slacks, difference, draw_cases
from flashbulb.theory.cmdp import Table, TabularCMDP, backup, least_cost_q, value
from flashbulb.theory.example_cmdps import random_cmdp
from flashbulb.theory.q_learning import LearningSchedule, Trace, learn_with_intrinsic_cost

_WHERE = "Theorem 3"
CLOSE = 0.05  # relative error that counts as converged; sampling leaves about 0.02 after 800,000 updates
KERNEL = MemoryConfig(embedding=0, xi=0.1)


def _worst_process(rng: np.random.Generator, lasting: float, runs: int) -> np.ndarray:
    """The corrected process of Lemma B.6: Delta_{t+1}(x_t) = (1 - zeta) Delta_t(x_t) + zeta F_t(x_t).

    E F_t is as large as condition 3 allows, and the noise grows with Delta_t as condition 4 allows. c_t falls to
    `lasting`. Returns the largest entry of Delta after the last update, for each run.
    """
    delta, visits, every = np.full((runs, 4), 5.0), np.zeros((runs, 4)), np.arange(runs)
    for t in range(20_000):
        x, largest = rng.integers(4, size=runs), np.abs(delta).max(1)
        zeta = (1 + visits[every, x]) ** -0.8
        visits[every, x] += 1
        f = 0.5 * largest + max(0.999**t, lasting) + (1 + 0.5 * largest) * rng.choice([-1.0, 1.0], size=runs)
        delta[every, x] += zeta * (f - delta[every, x])
    return np.abs(delta).max(1)


def approximation_lemma(count: int, seed: int) -> StatementCheck:
    """The lemma prints the step size zeta_{t+1} on the left in place of Delta_{t+1}."""
    left = _worst_process(np.random.default_rng(seed), 0.0, count)
    return check_slacks("Lemma B.6", "corrected (Delta_{t+1} on the left): Delta_t below 0.2, from 5", list(0.2 - left))


def approximation_lemma_with_lasting_cost(count: int, seed: int) -> StatementCheck:
    left = _worst_process(np.random.default_rng(seed), 0.5, count)
    return check_slacks("Lemma B.6", "the same if c_t stays at 0.5", list(0.2 - left), expected=False)


def contraction(count: int, seed: int) -> StatementCheck:
    """Condition 3 of Lemma B.6 for E[F|P_t], exactly, at tables far from and near to Q*_C; c_t = beta |c^I|."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, optimum = case.cmdp, least_cost_q(case.cmdp, case.cmdp.cost)
        for size in (1e-3, 1.0, 100.0):
            q = optimum + size * case.rng.standard_normal(optimum.shape)
            expected = backup(cmdp, q.min(1), cmdp.cost + case.intrinsic) - optimum
            bound = cmdp.gamma * np.abs(q - optimum).max() + np.abs(case.intrinsic).max()
            slacks.append(float(bound - np.abs(expected).max()) / max(1.0, size))
    return check_slacks(_WHERE, "condition 3: norm(E F_t) <= gamma norm(Delta_t) + beta norm(c^I), greedy a'", slacks)


def policy_evaluation(count: int, seed: int) -> StatementCheck:
    """With a' from a fixed policy, expected updates converge to Q_C^pi, the solution of a linear system."""
    slacks = []
    for case in draw_cases(max(count // 4, 10), seed):
        cmdp, q = case.cmdp, np.zeros_like(case.cmdp.cost)
        for n in range(int(60 / (1 - cmdp.gamma))):
            q = 0.5 * q + 0.5 * backup(cmdp, (case.new * q).sum(1), cmdp.cost + cmdp.gamma**n * case.intrinsic)
        slacks.append(difference(q, backup(cmdp, value(cmdp, case.new, cmdp.cost), cmdp.cost)))
    return check_slacks(_WHERE, "a' of a fixed pi, with gamma^n: the limit is Q_C^pi", slacks)


def constant_factor_evaluation(count: int, seed: int) -> StatementCheck:
    """Without gamma^n, the limit differs from Q_C^pi by the value of the intrinsic cost."""
    slacks = []
    for case in draw_cases(max(count // 4, 10), seed):
        cmdp, q = case.cmdp, np.zeros_like(case.cmdp.cost)
        for _ in range(int(60 / (1 - cmdp.gamma))):
            q = 0.5 * q + 0.5 * backup(cmdp, (case.new * q).sum(1), cmdp.cost + case.intrinsic)
        extrinsic = backup(cmdp, value(cmdp, case.new, cmdp.cost), cmdp.cost)
        excess = backup(cmdp, value(cmdp, case.new, case.intrinsic), case.intrinsic)
        slacks.append(difference(q, extrinsic + excess))
    return check_slacks(_WHERE, "a' of a fixed pi, beta constant: the limit is Q_C^pi + Q_I^pi", slacks)


def _runs(count: int, seed: int, balance: BalanceConfig, limit: Callable[[TabularCMDP, Trace], Table]) -> list[float]:
    """Sampled greedy Q-learning on small CMDPs; the slack is CLOSE minus the relative error."""
    slacks = []
    for rng in np.random.default_rng(seed).spawn(max(count // 25, 2)):
        cmdp = random_cmdp(5, 3, 0.5, int(rng.integers(2**31)), gamma=0.8)
        trace = learn_with_intrinsic_cost(cmdp, balance, KERNEL, LearningSchedule(), 0.0, rng)
        wanted = limit(cmdp, trace)
        slacks.append(CLOSE - float(np.abs(trace.q - wanted).max() / np.abs(wanted).max()))
    return slacks


def _optimum(cmdp: TabularCMDP, trace: Trace) -> Table:
    return least_cost_q(cmdp, cmdp.cost)


def greedy_with_discount(count: int, seed: int) -> StatementCheck:
    slacks = _runs(count, seed, BalanceConfig(initial=1.0, rate=0.05, discount=0.97), _optimum)
    return check_slacks(_WHERE, "sampled, greedy, with gamma^n: within 5 % of Q*_C", slacks, tolerance=0.0)


def greedy_without_discount(count: int, seed: int) -> StatementCheck:
    slacks = _runs(count, seed, BalanceConfig(initial=1.0, rate=0.0, discount=1.0), _optimum)
    return check_slacks(
        _WHERE, "the same with beta constant: within 5 % of Q*_C", slacks, expected=False, tolerance=0.0
    )


def greedy_without_discount_limit(count: int, seed: int) -> StatementCheck:
    def shifted(cmdp: TabularCMDP, trace: Trace) -> Table:
        return least_cost_q(cmdp, cmdp.cost + trace.c_i[:, None])

    slacks = _runs(count, seed, BalanceConfig(initial=1.0, rate=0.0, discount=1.0), shifted)
    return check_slacks(_WHERE, "beta constant: within 5 % of the least value of c^E + beta c^I", slacks, tolerance=0.0)


def greedy_with_correction_only(count: int, seed: int) -> StatementCheck:
    """With eps measured against the exact Q*, the correction suffices: while beta > 0, eps >= 0 lowers b to 0."""
    slacks = _runs(count, seed, BalanceConfig(initial=1.0, rate=0.05, discount=1.0), _optimum)
    return check_slacks(_WHERE, "without gamma^n but with exact eps_n: within 5 % of Q*_C", slacks, tolerance=0.0)
