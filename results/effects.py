"""What an algorithm changes against its base: `python -m results.effects DIRECTORY...`.

A row per pair, task and length, from `measures.csv` of all directories: the number of seeds of each, then for every
measure the mean of the base, that of the other, and the 95 % interval of the difference (Welch's; none with fewer than
three seeds). A run that several directories have counts once, from the first of them. The row "mean of N" is the change
in shares of the base's mean, averaged over tasks, with Student's interval over tasks, where there are at least three;
not of returns and biases, which may be near 0 or below.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

from flashbulb.analysis.statistics import student_interval
from results.tables import print_row, rows_of, short

PAIRS = (
    ("cpo", "mice-cpo"),
    ("cpo, authors", "mice-cpo, authors"),
    ("cpo", "mice-cpo, discount 1"),
    ("pid-lag", "mice-pid"),
    ("pid-lag", "pid-lag-twin"),
    ("cpo", "mice-salient"),
    ("trpo-pid", "mice-salient"),
)
RATES = ("violation_rate", "violation_rate_hundred")  # shown in per cent
SHARES = (*RATES, "mean_excess", "cost")  # never negative
MEASURES = {
    "violation_rate": "violations, %",
    "violation_rate_hundred": "of the mean of a hundred episodes, %",
    "mean_excess": "mean excess",
    "return": "return",
    "cost": "cost",
    "bias_unsafe": "bias, unsafe states",
}

Seeds = dict[int, dict[str, float]]  # seed -> measures
Cells = dict[tuple[str, str, int], Seeds]  # (task, label, steps)


def main(*places: str) -> None:
    cells = gather(places)
    sections = sorted({(task, steps) for task, _, steps in cells}, key=lambda section: (-section[1], section[0]))
    print_row("task", "pair", "seeds", *MEASURES.values())
    print_row(*["---"] * (3 + len(MEASURES)))
    for base, other in PAIRS:
        changes: dict[str, list[float]] = defaultdict(list)
        for task, steps in sections:
            theirs, ours = (cells.get((task, label, steps), {}) for label in (base, other))
            if theirs and ours:
                pairs = {name: (column(theirs, name), column(ours, name)) for name in MEASURES}
                about = f"{short(task)}, {steps / 1e6:g}M", f"{base} → {other}", f"{len(theirs)}, {len(ours)}"
                print_row(*about, *(compare(*pair) for pair in pairs.values()))
                for name, (before, after) in pairs.items():
                    if name in SHARES and len(before) and len(after) and before.mean():
                        changes[name].append(after.mean() / before.mean() - 1)
        tasks = max(map(len, changes.values()), default=0)
        if tasks > 2:
            print_row(f"mean of {tasks}", f"{base} → {other}", "", *(change(changes[name]) for name in MEASURES))


def gather(places: tuple[str, ...]) -> Cells:
    cells: Cells = defaultdict(dict)
    for place in map(Path, places):
        for row in rows_of(place / "measures.csv"):
            key = row["task"], row["label"], int(float(row["steps"]))
            cells[key].setdefault(int(row["seed"]), {name: float(row.get(name) or "nan") for name in MEASURES})
    return cells


def column(seeds: Seeds, name: str) -> np.ndarray:
    values = np.array([row[name] for row in seeds.values()]) * (100 if name in RATES else 1)
    return values[~np.isnan(values)]


def compare(before: np.ndarray, after: np.ndarray) -> str:
    """Both means, and the interval of their difference."""
    if not len(before) or not len(after):
        return ""
    text = f"{number(before.mean())} → {number(after.mean())}"
    if min(len(before), len(after)) < 3:
        return text
    low, high = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    return f"{text} [{number(low)}, {number(high)}]"


def change(shares: list[float]) -> str:
    if len(shares) < 3:
        return ""
    found = student_interval(np.array(shares))
    return f"{found.mean:+.0%}" + ("" if found.low is None else f" [{found.low:+.0%}, {found.high:+.0%}]")


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
