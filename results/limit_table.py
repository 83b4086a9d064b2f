"""Who kept the limit, and at what return: `python -m results.limit_table DIRECTORY... [--labels LABEL,LABEL...]`.

A row per task, length and label: the number of seeds, then means over those that have the measure, and their range: the
share of iterations above the limit (in brackets that of the mean of the last hundred finished episodes), the excess,
the cost of the second half, the return. Where two directories have the same seed, the first counts.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from results.tables import Row, print_row, rows_of, short

NAMES = ("task", "algorithm", "steps", "seeds")
MEASURES = ("violations, all", "violations, late", "mean excess", "late cost", "return")


def main() -> None:
    parser = argparse.ArgumentParser(description="Who kept the limit, and at what return.")
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--labels", type=lambda text: text.split(","), help="only these (default: all)")
    options = parser.parse_args()
    cells: dict[tuple[str, float, str], dict[str, Row]] = defaultdict(dict)
    for place in options.directories:
        costs = late_costs(place)
        for row in rows_of(place / "measures.csv"):
            key = row["task"], float(row["steps"]), row["label"]
            cells[key].setdefault(row["seed"], row | {"late_cost": costs.get(row["run"], "nan")})
    print_row(*NAMES, *MEASURES)
    print_row(*["---"] * len(NAMES + MEASURES))
    for (task, steps, label), seeds in sorted(cells.items()):
        if options.labels and label not in options.labels:
            continue
        runs = [*seeds.values()]
        excess, late, returns = ([float(row[name]) for row in runs] for name in ("mean_excess", "late_cost", "return"))
        rates = violations(runs, ""), violations(runs, "_late")
        numbers = spread(excess, 2), spread(late, 1), spread(returns, 0 if max(returns) > 100 else 1)
        print_row(short(task), f"`{label}`", f"{steps:,.0f}", str(len(runs)), *rates, *numbers)


def late_costs(place: Path) -> dict[str, str]:
    """The mean cost in the second half of each run."""
    costs = defaultdict(list)
    for path in place.glob("curves*.csv"):
        for row in rows_of(path):
            costs[row.get("run", "")].append(float(row["cost"]))
    return {run: str(np.mean(found[len(found) // 2 :])) for run, found in costs.items()}


def violations(runs: list[Row], suffix: str) -> str:
    rates = [100 * float(row[f"violation_rate{suffix}"]) for row in runs]
    hundred = [100 * float(row.get(f"violation_rate_hundred{suffix}") or "nan") for row in runs]
    return f"{spread(rates, 0)} %" + ("" if np.isnan(hundred).all() else f" ({spread(hundred, 0)})")


def spread(values: list[float], digits: int) -> str:
    """The mean of those that are known, and the range where there is one."""
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return "-"
    mean, low, high = (f"{x:,.{digits}f}" for x in (np.mean(known), min(known), max(known)))
    return mean if low == high else f"{mean} [{low}, {high}]"


if __name__ == "__main__":
    main()
