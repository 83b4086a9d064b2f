"""What an algorithm changes against its base: `python -m results.effects BASE OTHER [--tasks TASK,TASK...]`.

A row per task and length. A cell has the means over seeds of the base and of the other, then their difference with its
95 % interval (Welch's), where both have three seeds. The last row is the relative change of the base's mean, averaged
over tasks, with Student's interval over tasks; not of returns and biases, which may be near 0 or below.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict

import numpy as np
from scipy import stats

from flashbulb.analysis.statistics import student_interval
from results.tables import Cell, Runs, column, gather, print_head, print_row

# Title and number of digits. Rates are in per cent.
MEASURES = {
    "violation_rate": ("violations, %", 1),
    "violation_rate_hundred": ("of the mean of a hundred episodes, %", 1),
    "mean_excess": ("mean excess", 2),
    "cost": ("cost", 1),
    "return": ("return", 1),
    "bias_unsafe": ("bias, unsafe states", 1),
}
# Never negative, so that a relative change means something.
SHARES = ("violation_rate", "violation_rate_hundred", "mean_excess", "cost")


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="What an algorithm changes against its base.")
    parser.add_argument("base")
    parser.add_argument("other")
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="only these (default: all)")
    options = parser.parse_args(arguments or None)
    runs = gather()
    print_head("task", "seeds", *(title for title, _ in MEASURES.values()))
    changes: dict[str, list[float]] = defaultdict(list)
    for cell in shared_cells(runs, options.base, options.other):
        if options.tasks and cell.task not in options.tasks:
            continue
        base, other = runs[cell._replace(label=options.base)], runs[cell]
        pairs = {name: (scaled(column(base, name), name), scaled(column(other, name), name)) for name in MEASURES}
        seeds = f"{len(base)}" if len(base) == len(other) else f"{len(base)}, {len(other)}"
        print_row(cell.place, seeds, *(compare(*pairs[name], digits) for name, (_, digits) in MEASURES.items()))
        for name in SHARES:
            before, after = pairs[name]
            if len(before) and len(after) and before.mean():
                changes[name].append(after.mean() / before.mean() - 1)
    if max(map(len, changes.values()), default=0) > 2:
        print_row(f"mean of {max(map(len, changes.values()))}", "", *(relative(changes[name]) for name in MEASURES))


def shared_cells(runs: Runs, base: str, other: str) -> list[Cell]:
    """The cells of the other that the base has, too: longest runs first."""
    found = [cell for cell in runs if cell.label == other and cell._replace(label=base) in runs]
    return sorted(found, key=lambda cell: (-cell.steps, cell.task))


def scaled(values: np.ndarray, name: str) -> np.ndarray:
    return 100 * values if name.startswith("violation") else values


def compare(before: np.ndarray, after: np.ndarray, digits: int) -> str:
    if not len(before) or not len(after):
        return ""
    if max(abs(before.mean()), abs(after.mean())) >= 1000:
        digits = 0
    text = f"{before.mean():,.{digits}f} → {after.mean():,.{digits}f}"
    if min(len(before), len(after)) < 3 or not np.ptp(before) + np.ptp(after):
        return text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one of the two may not vary
        low, high = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    difference, low, high = (round(value, digits) + 0.0 for value in (after.mean() - before.mean(), low, high))  # no -0
    return f"{text} ({difference:+,.{digits}f} [{low:+,.{digits}f}, {high:+,.{digits}f}])"


def relative(shares: list[float]) -> str:
    if len(shares) < 3:
        return ""
    found = student_interval(np.array(shares))
    return f"{found.mean:+.0%}" + ("" if found.low is None else f" [{found.low:+.0%}, {found.high:+.0%}]")


if __name__ == "__main__":
    main()
