"""Who kept the limit, and at what return: `python -m results.limit_table LABEL,LABEL... [--tasks TASK,TASK...]`.

A row per task, length and label: means over seeds and their range of the share of iterations above the run's limit (in
brackets that of the mean of the last hundred finished episodes), the excess, the cost of the second half, the return.
"""

from __future__ import annotations

import argparse

import numpy as np

from results.tables import Row, column, curve, gather, print_head, print_row, spread


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="Who kept the limit, and at what return.")
    parser.add_argument("labels", type=lambda text: text.split(","))
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="only these (default: all)")
    options = parser.parse_args(arguments or None)
    runs = gather()
    print_head(
        "task", "algorithm", "seeds", "violations, all", "violations, late", "mean excess", "late cost", "return"
    )
    order = {label: place for place, label in enumerate(options.labels)}
    chosen = [cell for cell in runs if cell.label in order and cell.task in (options.tasks or [cell.task])]
    for cell in sorted(chosen, key=lambda cell: (-cell.steps, cell.task, order[cell.label])):
        seeds = runs[cell]
        returns = column(seeds, "return")
        numbers = (
            *(violations(seeds, ""), violations(seeds, "_late"), spread(column(seeds, "mean_excess"), ".2f")),
            spread(np.array([late_cost(row) for row in seeds.values()]), ".1f"),
            spread(returns, ",.0f" if max(returns) > 100 else ".1f"),
        )
        print_row(cell.place, f"`{cell.label}`", str(len(seeds)), *numbers)


def late_cost(run: Row) -> float:
    """The mean cost in the second half of the run."""
    _, cost = curve(run, "cost")
    return float(np.mean(cost[len(cost) // 2 :])) if len(cost) else np.nan


def violations(seeds: dict[int, Row], suffix: str) -> str:
    rates, hundred = (100 * column(seeds, f"{name}{suffix}") for name in ("violation_rate", "violation_rate_hundred"))
    return f"{spread(rates, '.0f')} %" + (f" ({spread(hundred, '.0f')})" if len(hundred) else "")


if __name__ == "__main__":
    main()
