"""Lemma 1, Theorem 1 and the derivative term of MICE-PIDLag (Appendices A.2, B.3 and B.4)."""

from __future__ import annotations

import numpy as np

from flashbulb.theory.cases import Case, StatementCheck, check_slacks, difference, draw_cases
from flashbulb.theory.cmdp import (
    Table,
    advantage,
    expected_sum,
    mean_over,
    sum_by_time,
    total_variation,
    value,
    visitation,
)


def constraint_difference(count: int, seed: int) -> StatementCheck:
    """Lemma 1, with the right side summed over time along pi'."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, both = case.cmdp, case.cmdp.cost + case.intrinsic
        a_ei = advantage(cmdp, value(cmdp, case.old, cmdp.cost), both)
        left = expected_sum(cmdp, case.new, both) - expected_sum(cmdp, case.old, cmdp.cost)
        slacks.append(difference(left, sum_by_time(cmdp, case.new, a_ei)))
    return check_slacks("Lemma 1", "J_C^EI(pi') - J_C(pi) = E_pi' sum gamma^t A_C^EI(s, a; pi)", slacks)


def constraint_difference_any_critic(count: int, seed: int) -> StatementCheck:
    """The lemma needs only the mean of V_C^pi at the start. So with a critic V in its place, the sum is the difference
    to E_rho V, not to J_C(pi)."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, both = case.cmdp, case.cmdp.cost + case.intrinsic
        critic = case.rng.standard_normal(cmdp.states) * 10
        left = expected_sum(cmdp, case.new, both) - float(cmdp.start @ critic)
        slacks.append(difference(left, sum_by_time(cmdp, case.new, advantage(cmdp, critic, both))))
    return check_slacks("Lemma 1", "any critic V: J_C^EI(pi') - E_rho V = E_pi' sum gamma^t delta_V^EI", slacks)


def visitation_shift(count: int, seed: int) -> StatementCheck:
    """Lemma 3 of CPO, which Theorem 1 uses."""
    slacks = []
    for case in draw_cases(count, seed):
        gamma, occupied = case.cmdp.gamma, visitation(case.cmdp, case.old)
        moved = np.abs(visitation(case.cmdp, case.new) - occupied).sum()
        slacks.append(2 * gamma / (1 - gamma) * float(occupied @ total_variation(case.new, case.old)) - float(moved))
    return check_slacks("Theorem 1", "norm_1(d' - d) <= 2 gamma/(1-gamma) E_d D_TV (CPO's Lemma 3)", slacks)


def theorem_1_slack(case: Case, values: np.ndarray, intrinsic: Table) -> float:
    """Right minus left of Theorem 1 as printed, A_C^EI taken with the given state values."""
    cmdp, both = case.cmdp, case.cmdp.cost + intrinsic
    occupied, gamma = visitation(cmdp, case.old), cmdp.gamma
    a_ei = advantage(cmdp, values, both)
    epsilon = np.abs((case.new * a_ei).sum(1)).max()
    shift = 2 * gamma * epsilon / (1 - gamma) * float(occupied @ total_variation(case.new, case.old))
    right = (mean_over(occupied, case.new, a_ei) + shift) / (1 - gamma)
    return right - (expected_sum(cmdp, case.new, both) - expected_sum(cmdp, case.old, both))


def _extrinsic_value(case: Case) -> np.ndarray:
    return value(case.cmdp, case.old, case.cmdp.cost)


def _of_both_signs(case: Case) -> Table:
    """beta c^I brought to mean zero over the states, the usual meaning of "normalised"."""
    c_i = case.intrinsic[:, 0]
    return np.repeat((c_i - c_i.mean())[:, None], case.cmdp.actions, axis=1)


def theorem_1_printed(count: int, seed: int) -> StatementCheck:
    """True for c^I >= 0, because the last equality of the proof omits -I(pi) <= 0."""
    slacks = [theorem_1_slack(case, _extrinsic_value(case), case.intrinsic) for case in draw_cases(count, seed)]
    return check_slacks("Theorem 1", "as printed, for c^I >= 0", slacks)


def theorem_1_printed_signed(count: int, seed: int) -> StatementCheck:
    slacks = [theorem_1_slack(case, _extrinsic_value(case), _of_both_signs(case)) for case in draw_cases(count, seed)]
    return check_slacks("Theorem 1", "as printed, for c^I normalised to mean zero", slacks, expected=False)


def theorem_1(count: int, seed: int) -> StatementCheck:
    """What the proof shows: the right side is smaller by I(pi), and the bound holds for every sign of c^I.

    At pi' = pi both sides are zero, so the bound is tight.
    """
    slacks: list[float] = []
    for case in draw_cases(count, seed):
        for intrinsic in (case.intrinsic, _of_both_signs(case)):
            own = expected_sum(case.cmdp, case.old, intrinsic)
            pairs = (case, case._replace(new=case.old))
            slacks.extend(theorem_1_slack(pair, _extrinsic_value(case), intrinsic) - own for pair in pairs)
    return check_slacks("Theorem 1", "corrected: minus I(pi) on the right; c^I of any sign", slacks)


def theorem_1_own_value(count: int, seed: int) -> StatementCheck:
    """With V of c^E + beta c^I in A_C^EI (what the critic of equation 6 learns), A has mean zero under pi, and
    the printed bound is CPO's corollary for that cost."""
    slacks = []
    for case in draw_cases(count, seed):
        for intrinsic in (case.intrinsic, _of_both_signs(case)):
            v_ei = value(case.cmdp, case.old, case.cmdp.cost + intrinsic)
            slacks.append(theorem_1_slack(case, v_ei, intrinsic))
    return check_slacks("Theorem 1", "as printed, with V_C^EI in place of V_C; c^I of any sign", slacks)


def _pid_measure(case: Case, base: Table, evaluated: Table, intrinsic: Table) -> float:
    """J_C(base) + E_{d, evaluated}[A_C^EI(s, a|base)] / (1 - gamma): what Appendix A.2 calls y."""
    cmdp = case.cmdp
    a_ei = advantage(cmdp, value(cmdp, base, cmdp.cost), cmdp.cost + intrinsic)
    occupied = visitation(cmdp, evaluated)
    return expected_sum(cmdp, base, cmdp.cost) + mean_over(occupied, evaluated, a_ei) / (1 - cmdp.gamma)


def _third_policy(case: Case) -> Table:
    return case.rng.dirichlet(np.ones(case.cmdp.actions), size=case.cmdp.states)


def pid_derivative_forms(count: int, seed: int) -> StatementCheck:
    """The two printed forms of the derivative before (.)_+, with pi_{k-1} = old and pi_k = new."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, policy = case.cmdp, _third_policy(case)
        both, gamma = cmdp.cost + case.intrinsic, cmdp.gamma
        v_old, v_new = value(cmdp, case.old, cmdp.cost), value(cmdp, case.new, cmdp.cost)
        first = _pid_measure(case, case.new, policy, case.intrinsic)
        first -= _pid_measure(case, case.old, policy, case.intrinsic)
        occupied = visitation(cmdp, policy)
        second = mean_over(occupied, policy, advantage(cmdp, v_new, both) - advantage(cmdp, v_old, both))
        second += mean_over(visitation(cmdp, case.new), case.new, advantage(cmdp, v_old, cmdp.cost))
        slacks.append(difference(first, second / (1 - gamma)))
    return check_slacks("App. A.2", "the two forms of the derivative term agree", slacks)


def pid_derivative_printed(count: int, seed: int) -> StatementCheck:
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, both, policy = case.cmdp, case.cmdp.cost + case.intrinsic, _third_policy(case)
        measured = _pid_measure(case, case.new, policy, case.intrinsic)
        measured -= _pid_measure(case, case.old, policy, case.intrinsic)
        slacks.append(difference(measured, expected_sum(cmdp, case.new, both) - expected_sum(cmdp, case.old, both)))
    return check_slacks(
        "App. A.2", "as printed (one pi in both terms): it is the change of J_C^EI", slacks, expected=False
    )


def pid_derivative(count: int, seed: int) -> StatementCheck:
    """With y of each iteration at its own policy, the derivative is the change of J_C + I."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, both = case.cmdp, case.cmdp.cost + case.intrinsic
        measured = _pid_measure(case, case.new, case.new, case.intrinsic)
        measured -= _pid_measure(case, case.old, case.old, case.intrinsic)
        slacks.append(difference(measured, sum_by_time(cmdp, case.new, both) - sum_by_time(cmdp, case.old, both)))
    return check_slacks("App. A.2", "corrected (y_k taken at pi_k): it is the change of J_C^EI", slacks)


def pid_derivative_misses_cost(count: int, seed: int) -> StatementCheck:
    """With one pi in both terms, Lemma 1 makes both equal to J_C^EI(pi), so the change of J_C from k-1 to k cancels."""
    slacks = []
    for case in draw_cases(count, seed):
        policy = _third_policy(case)
        later = _pid_measure(case, case.new, policy, case.intrinsic)
        earlier = _pid_measure(case, case.old, policy, 0.5 * case.intrinsic)
        changed = 0.5 * sum_by_time(case.cmdp, policy, case.intrinsic)
        slacks.append(difference(later - earlier, changed))
    return check_slacks("App. A.2", "as printed it is only the change of the intrinsic sum at pi", slacks)
