"""All checks in the order of the paper, then that of the margin, and the table of `flashbulb theory`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from flashbulb.errors import UsageError
from flashbulb.theory import (
    balancing,
    bias_dynamics,
    convergence,
    cost_bounds,
    cpo_dual,
    policy_step,
    violation_frequency,
)
from flashbulb.theory.bias_figure import draw_bias_curves
from flashbulb.theory.cases import StatementCheck

CASES, SEED = 200, 2025

CHECKS: tuple[Callable[[int, int], StatementCheck], ...] = (
    bias_dynamics.noisy_minimum,
    bias_dynamics.uniform_noise_bias,
    bias_dynamics.accumulated_underestimation,
    bias_dynamics.underestimated_after_a_step,
    bias_dynamics.intrinsic_raises_values,
    bias_dynamics.estimation_bias_lemma,
    balancing.modified_target,
    balancing.modified_target_printed,
    balancing.direction_printed,
    balancing.direction,
    balancing.recursion_printed,
    balancing.recursion,
    balancing.one_factor_for_all,
    cost_bounds.constraint_difference,
    cost_bounds.constraint_difference_any_critic,
    cost_bounds.visitation_shift,
    cost_bounds.theorem_1_printed,
    cost_bounds.theorem_1_printed_signed,
    cost_bounds.theorem_1,
    cost_bounds.theorem_1_own_value,
    policy_step.surrogate_is_cpo_with_less_room,
    policy_step.objective_is_met,
    policy_step.theorem_2_printed,
    policy_step.theorem_2,
    policy_step.theorem_2_own_intrinsic,
    convergence.approximation_lemma,
    convergence.approximation_lemma_with_lasting_cost,
    convergence.contraction,
    convergence.policy_evaluation,
    convergence.constant_factor_evaluation,
    convergence.greedy_with_discount,
    convergence.greedy_without_discount,
    convergence.greedy_without_discount_limit,
    convergence.greedy_with_correction_only,
    policy_step.linear_constant_printed,
    policy_step.linear_constant,
    cpo_dual.dual_printed,
    cpo_dual.dual_sign_corrected,
    cpo_dual.dual_corrected,
    cpo_dual.dual_of_training,
    cost_bounds.pid_derivative_forms,
    cost_bounds.pid_derivative_printed,
    cost_bounds.pid_derivative_misses_cost,
    cost_bounds.pid_derivative,
    violation_frequency.violation_frequency,
)

HEADER = ("where", "statement", "cases", "worst slack", "holds")


def result_text(check: StatementCheck) -> str:
    """ "yes" or "no", marked if it is not the expected result."""
    plain = "yes" if check.holds else "no"
    return f"{plain.upper()} (unexpected)" if check.is_unexpected else plain


def table_row(check: StatementCheck) -> tuple[str, ...]:
    slack = f"{check.worst_slack:+.0e}" if check.worst_slack else "0"
    return (check.where, check.statement, str(check.cases), slack, result_text(check))


def print_checks(checks: Iterable[StatementCheck]) -> bool:
    """Print a Markdown table row by row as the checks finish; True if no result was unexpected."""
    widths, as_expected = (11, 76, 6, 11, 5), True

    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    print(line(HEADER))
    print(line(tuple("-" * width for width in widths)))
    for check in checks:
        print(line(table_row(check)), flush=True)
        as_expected &= not check.is_unexpected
    return as_expected


def main(arguments: list[str]) -> int:
    """`flashbulb theory [FIGURE.png]`: print the table and draw the figure if named; 1 if a result was unexpected."""
    if len(arguments) > 1 or (arguments and not arguments[0].endswith(".png")):
        raise UsageError(
            f"theory: {arguments[-1]!r} is not allowed; it must be one path that ends in .png, or nothing."
        )
    if arguments and not Path(arguments[0]).parent.is_dir():
        raise UsageError(f"theory: {arguments[0]!r} cannot be drawn; its directory must exist.")
    as_expected = print_checks(check(CASES, SEED) for check in CHECKS)
    if arguments:
        draw_bias_curves(Path(arguments[0]))
    return 0 if as_expected else 1
