"""The first table of docs/results_limit.md: `python results/limit_table.py DIRECTORY...`.

A row per task and label: number of seeds, then the mean over seeds and their range of the share of iterations above the
limit (in brackets that of the mean of the last hundred finished episodes), of the cost and of the return.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

LIMIT = 25.0  # of all runs in results/


def main(*places: str) -> None:
    print("| task | algorithm | steps | seeds | violations, all | violations, late | mean late cost | return |")
    print("|---|---|---|---|---|---|---|---|")
    for place in map(Path, places):
        measures = list(csv.DictReader((place / "measures.csv").read_text().splitlines()))
        costs = defaultdict(list)
        for row in csv.DictReader((place / "curves.csv").read_text().splitlines()):
            costs[row["run"]].append(float(row["cost"]))
        for task, label in dict.fromkeys((row["task"], row["label"]) for row in measures):
            runs = [row for row in measures if (row["task"], row["label"]) == (task, label)]
            late = [np.mean(costs[row["run"]][len(costs[row["run"]]) // 2 :]) for row in runs]
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
            print(f"| {' | '.join(cells)} |")


def violations(runs: list[dict[str, str]], suffix: str) -> str:
    rates = [100 * float(row[f"violation_rate{suffix}"]) for row in runs]
    hundred = [100 * float(row.get(f"violation_rate_hundred{suffix}") or "nan") for row in runs]
    return f"{spread(rates, 0)} %" + ("" if np.isnan(hundred).any() else f" ({spread(hundred, 0)})")


def spread(values: list[float], digits: int) -> str:
    """The mean, and the range where there is one."""
    mean, low, high = (f"{x:,.{digits}f}" for x in (np.mean(values), min(values), max(values)))
    return mean if low == high else f"{mean} [{low}, {high}]"


if __name__ == "__main__":
    main(*sys.argv[1:])
