"""Every row of `flashbulb theory` on other CMDPs than the command's, and tests that the bounds are not trivial."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flashbulb.config import BalanceConfig, MemoryConfig, TrustRegionConfig
from flashbulb.theory.actual_step import cpo_update
from flashbulb.theory.balancing import Transition, compounded
from flashbulb.theory.cases import StatementCheck, check_slacks, draw_cases, softmax
from flashbulb.theory.cmdp import (
    Table,
    TabularCMDP,
    advantage,
    expected_sum,
    mean_over,
    state_transitions,
    value,
    visitation,
)
from flashbulb.theory.cost_bounds import theorem_1_slack
from flashbulb.theory.example_cmdps import cliff, random_cmdp
from flashbulb.theory.policy_step import policy_steps, unequal_memory
from flashbulb.theory.q_learning import LearningSchedule, learn_with_intrinsic_cost, learn_with_twin_maximum
from flashbulb.theory.statements import CHECKS
from flashbulb.theory.violation_frequency import CONFIG, ITERATIONS, frequency_slack, violation_runs


def _documented() -> set[tuple[str, str, str]]:
    lines = (Path(__file__).parents[2] / "docs" / "theory.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {(row[0], row[1], row[4]) for row in rows[2:]}


DOCUMENTED = _documented()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.__module__.rsplit('.', 1)[-1]}-{check.__name__}")
def test_statement(check: Callable[[int, int], StatementCheck]) -> None:
    result = check(40, 11)
    assert result.holds == result.expected, result
    assert np.isfinite(result.worst_slack)
    # docs/theory.md has this row with this result.
    assert (result.where, result.statement, "yes" if result.holds else "no") in DOCUMENTED


def test_the_documentation_has_no_other_rows() -> None:
    assert len(DOCUMENTED) == len(CHECKS)


def test_the_printed_recursion_compounds() -> None:
    t = Transition(extrinsic_target=0.0, c_i=1.0, bias=0.0, beta=2.0, alpha=0.1, gamma=0.99, n=20)
    assert compounded(t) == pytest.approx(2.0 * 0.99 ** (20 * 19 / 2))


def test_a_statement_fails_if_one_case_does() -> None:
    assert not check_slacks("", "", [1.0, -1e-6, 1.0]).holds
    assert check_slacks("", "", [1.0, -1e-12]).holds
    assert not check_slacks("", "", [1.0, float("nan"), 1.0]).holds


@pytest.mark.parametrize("noise", ["sampling", "observed"])
def test_violations_are_as_frequent_as_asked_because_z_moves(noise: str) -> None:
    """z was never clipped, so that the bound is that of all iterations; with z at rest and a wrong noise it fails."""
    for run in violation_runs(8, seed=4, config=dataclasses.replace(CONFIG, noise=noise)):
        assert len(run.z) == ITERATIONS + 1
        assert 0 < run.z.min() < run.z.max() < CONFIG.maximum
        # Exact but for rounding: frequency - target = (z_N - z_0) / (rate N).
        moved = (run.z[-1] - run.z[0]) / (CONFIG.rate * ITERATIONS)
        assert (run.costs > np.float32(run.limit)).mean() - run.target == pytest.approx(moved, abs=1e-4)
        assert frequency_slack(run) == pytest.approx(0.06 - abs(moved), abs=1e-4)
    still = violation_runs(8, seed=4, config=dataclasses.replace(CONFIG, rate=0.0))
    assert min(frequency_slack(run) for run in still) < 0


def test_printed_theorem_1_is_loose_by_the_intrinsic_sum() -> None:
    """At pi' = pi the left side is zero and the printed right side is I(pi)."""
    for case in draw_cases(20, seed=3):
        slack = theorem_1_slack(case._replace(new=case.old), value(case.cmdp, case.old, case.cmdp.cost), case.intrinsic)
        assert slack == pytest.approx(expected_sum(case.cmdp, case.old, case.intrinsic), abs=1e-9)


def test_theorem_1_needs_its_divergence_term() -> None:
    short = []
    for case in draw_cases(60, seed=4):
        cmdp, both = case.cmdp, case.cmdp.cost + case.intrinsic
        a_ei = advantage(cmdp, value(cmdp, case.old, cmdp.cost), both)
        linear = mean_over(visitation(cmdp, case.old), case.new, a_ei) / (1 - cmdp.gamma)
        short.append(linear - (expected_sum(cmdp, case.new, both) - expected_sum(cmdp, case.old, cmdp.cost)))
    assert min(short) < -0.1


def test_theorem_2_needs_its_last_term() -> None:
    over = [
        expected_sum(u.cmdp, u.new, u.cmdp.cost) - (u.limit - expected_sum(u.cmdp, u.old, u.intrinsic))
        for u in policy_steps(60, seed=5)
    ]
    assert max(over) > 1e-3


def test_updates_move_and_come_near_the_limit() -> None:
    """The checks of Theorem 2 would be trivial if the policy did not change."""
    moved = [np.abs(u.new - u.old).max() for u in policy_steps(60, seed=6)]
    assert np.mean(np.array(moved) > 1e-3) > 0.7


def test_counterexample_to_theorem_2_by_hand() -> None:
    """No action is safer: J_C = gamma / (1 - gamma) before and after, the limit is J_C + I(pi_k), and I increases."""
    u = unequal_memory(seed=0)
    assert expected_sum(u.cmdp, u.new, u.cmdp.cost) == pytest.approx(9.0)
    before, after = (expected_sum(u.cmdp, p, u.intrinsic) for p in (u.old, u.new))
    assert u.limit == pytest.approx(9.0 + before)
    assert u.new[0, 0] > u.old[0, 0] + 0.01
    assert after > before + 0.1


@pytest.fixture
def example() -> tuple[TabularCMDP, np.ndarray, Table]:
    cmdp = random_cmdp(8, 3, 0.5, seed=9)
    rng = np.random.default_rng(9)
    return cmdp, rng.standard_normal((8, 3)), np.repeat(rng.uniform(0, 5, (8, 1)), 3, axis=1)


def _gradient(cmdp: TabularCMDP, policy: Table, a: Table) -> Table:
    """Of E over d^pi and pi' of `a` in the logits of pi', at pi' = pi."""
    return visitation(cmdp, policy)[:, None] * policy * (a - (policy * a).sum(1, keepdims=True))


def test_mice_cpo_as_printed_is_cpo(example: tuple[TabularCMDP, np.ndarray, Table]) -> None:
    """With the one-step A_C^EI and c = J_C - d, the intrinsic cost does not change the step."""
    cmdp, logits, intrinsic = example
    pi = softmax(logits)
    d, v_c = visitation(cmdp, pi), value(cmdp, pi, cmdp.cost)
    a_r = advantage(cmdp, value(cmdp, pi, cmdp.reward), cmdp.reward)
    steps = [
        cpo_update(logits, d, a_r, advantage(cmdp, v_c, signal) / (1 - cmdp.gamma), -0.05, TrustRegionConfig())[0]
        for signal in (cmdp.cost, cmdp.cost + intrinsic)
    ]
    assert np.abs(steps[0] - logits).max() > 1e-2
    np.testing.assert_allclose(steps[0], steps[1], atol=2e-4)


def test_intrinsic_cost_reaches_the_gradient_through_gae_and_through_its_own_critic(
    example: tuple[TabularCMDP, np.ndarray, Table],
) -> None:
    cmdp, logits, intrinsic = example
    pi, both = softmax(logits), cmdp.cost + intrinsic
    v_c, v_ei = value(cmdp, pi, cmdp.cost), value(cmdp, pi, both)
    decay = cmdp.gamma * 0.95
    delta = advantage(cmdp, v_c, both)
    later = np.linalg.solve(np.eye(8) - decay * state_transitions(cmdp, pi), (pi * delta).sum(1))
    plain = _gradient(cmdp, pi, advantage(cmdp, v_c, cmdp.cost))
    np.testing.assert_allclose(_gradient(cmdp, pi, delta), plain, atol=1e-12)
    for a in (delta + decay * cmdp.transitions @ later, advantage(cmdp, v_ei, both)):
        assert np.abs(_gradient(cmdp, pi, a) - plain).max() > 0.1 * np.abs(plain).max()


def test_order_of_the_biases_in_the_figure() -> None:
    """Plain and correlated twin critics are too low, the corrected one is closest; gamma^n removes its correction."""
    cmdp, kernel = cliff(), MemoryConfig(embedding=0, xi=0.1)
    schedule = LearningSchedule(iterations=500, steps=300, power=0.7, floor=0.1)

    def late_bias(balance: BalanceConfig) -> float:
        trace = learn_with_intrinsic_cost(cmdp, balance, kernel, schedule, 0.1, np.random.default_rng(1))
        return float(trace.bias[-50:].mean())

    plain = late_bias(BalanceConfig(initial=0.0, rate=0.0))
    fading = late_bias(BalanceConfig(initial=0.3))
    lasting = late_bias(BalanceConfig(initial=0.3, discount=1.0))
    twins = learn_with_twin_maximum(cmdp, schedule, 0.1, 0.9, np.random.default_rng(1)).bias[-50:].mean()
    assert plain < twins < lasting - 0.1
    assert plain + 0.03 < fading < lasting - 0.1
    assert abs(lasting) < 0.3 * abs(plain)
