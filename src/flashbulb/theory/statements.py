"""All checks in the paper's order, and the table of `flashbulb theory`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from flashbulb.errors import UsageError
from flashbulb.theory import balancing, constraint, convergence, dual, update
from flashbulb.theory import bias_dynamics as bias
from flashbulb.theory.bias_figure import draw_bias
from flashbulb.theory.cases import Check

CASES, SEED = 200, 2025

CHECKS: tuple[Callable[[int, int], Check], ...] = (
    bias.noisy_minimum,
    bias.uniform_noise,
    bias.accumulated_underestimation,
    bias.underestimated_after_a_step,
    bias.intrinsic_raises_values,
    bias.estimation_bias_lemma,
    balancing.modified_target,
    balancing.modified_target_printed,
    balancing.direction_printed,
    balancing.direction,
    balancing.recursion_printed,
    balancing.recursion,
    balancing.one_factor_for_all,
    constraint.constraint_difference,
    constraint.constraint_difference_any_critic,
    constraint.visitation_shift,
    constraint.theorem_1_printed,
    constraint.theorem_1_printed_signed,
    constraint.theorem_1,
    constraint.theorem_1_own_value,
    update.surrogate_is_cpo_with_less_room,
    update.objective_is_met,
    update.theorem_2_printed,
    update.theorem_2,
    update.theorem_2_own_intrinsic,
    convergence.approximation_lemma,
    convergence.approximation_lemma_with_lasting_cost,
    convergence.contraction,
    convergence.evaluation,
    convergence.constant_factor_evaluation,
    convergence.greedy_with_discount,
    convergence.greedy_without_discount,
    convergence.greedy_without_discount_limit,
    convergence.greedy_with_correction_only,
    update.constant_printed,
    update.constant,
    dual.dual_printed,
    dual.dual_half_mended,
    dual.dual_mended,
    dual.dual_of_training,
    constraint.pid_derivative_forms,
    constraint.pid_derivative_printed,
    constraint.pid_derivative_is_blind,
    constraint.pid_derivative,
)

HEADER = ("where", "statement", "cases", "worst slack", "holds")


def verdict(check: Check) -> str:
    """A slip that fails as we say is a plain "no"; anything else that we did not expect shouts."""
    plain = "yes" if check.holds else "no"
    return f"{plain.upper()} (unexpected)" if check.surprising else plain


def row(check: Check) -> tuple[str, ...]:
    slack = f"{check.worst_slack:+.0e}" if check.worst_slack else "0"
    return (check.where, check.statement, str(check.cases), slack, verdict(check))


def print_table(checks: Iterable[Check]) -> bool:
    """Print each row of a Markdown table as soon as it is known; True if nothing was unexpected."""
    widths, fine = (11, 76, 6, 11, 5), True

    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    print(line(HEADER))
    print(line(tuple("-" * width for width in widths)))
    for check in checks:
        print(line(row(check)), flush=True)
        fine &= not check.surprising
    return fine


def main(arguments: list[str]) -> int:
    """`flashbulb theory [FIGURE.png]`: the table, and the figure if asked for; 1 if a row came out unexpectedly."""
    if len(arguments) > 1 or (arguments and not arguments[0].endswith(".png")):
        raise UsageError(f"theory: {arguments[-1]!r} is not allowed; it takes at most the path of a .png to draw.")
    if arguments and not Path(arguments[0]).parent.is_dir():
        raise UsageError(f"theory: {arguments[0]!r} cannot be drawn; its directory must exist.")
    fine = print_table(check(CASES, SEED) for check in CHECKS)
    if arguments:
        draw_bias(Path(arguments[0]))
    return 0 if fine else 1
