"""The first table of docs/results_limit.md: `python -m results.limit_table DIRECTORY...`.

A row per task and label: number of seeds, then the mean over seeds and their range of the share of iterations above the
limit (in brackets that of the mean of the last hundred finished episodes), of the cost and of the return.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from results.tables import Row, print_row, rows_of


def main(*places: str) -> None:
    print_row("task", "algorithm", "steps", "seeds", "violations, all", "violations, late", "mean late cost", "return")
    print_row(*["---"] * 8)
    for place in map(Path, places):
        measures = rows_of(place / "measures.csv")
        costs = defaultdict(list)
        for row in rows_of(place / "curves.csv"):
            costs[row["run"]].append(float(row["cost"]))
        for task, label in dict.fromkeys((row["task"], row["label"]) for row in measures):
            runs = [row for row in measures if (row["task"], row["label"]) == (task, label)]
            late = [float(np.mean(costs[row["run"]][len(costs[row["run"]]) // 2 :])) for row in runs]
            steps, returns = float(runs[0]["steps"]), [float(row["return"]) for row in runs]
            cells = [
                task,
                f"`{label}`",
                f"{steps:,.0f}",
                str(len(runs)),
                violations(runs, ""),
                violations(runs, "_late"),
            ]
            cells += [spread(late, 1), spread(returns, 0 if max(returns) > 100 else 1)]
            print_row(*cells)


def violations(runs: list[Row], suffix: str) -> str:
    rates = [100 * float(row[f"violation_rate{suffix}"]) for row in runs]
    hundred = [100 * float(row.get(f"violation_rate_hundred{suffix}") or "nan") for row in runs]
    return f"{spread(rates, 0)} %" + ("" if np.isnan(hundred).any() else f" ({spread(hundred, 0)})")


def spread(values: list[float], digits: int) -> str:
    """The mean, and the range where there is one."""
    mean, low, high = (f"{x:,.{digits}f}" for x in (np.mean(values), min(values), max(values)))
    return mean if low == high else f"{mean} [{low}, {high}]"


if __name__ == "__main__":
    main(*sys.argv[1:])
