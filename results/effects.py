"""Effects with intervals from the measures of several directories of results: `python results/effects.py DIRECTORY...`.

A row per task and pair of an algorithm and its base: seeds of each, then for each measure the two means, their difference
and its 95 % interval by Welch's t-test (no interval with one seed). A run that several directories have counts once, from
the first of them. Only runs of the same length are compared, and in the last rows the difference of each task, in shares
of the base's mean, is averaged over tasks, with Student's interval over tasks.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

from flashbulb.analysis.statistics import student_interval

PAIRS = (
    ("cpo", "mice-cpo"),
    ("cpo", "mice-cpo, discount 1"),
    ("pid-lag", "mice-pid"),
    ("pid-lag", "pid-lag-twin"),
    ("cpo", "mice-salient"),
    ("trpo-pid", "mice-salient"),
)
MEASURES = {
    "violation_rate": "violations",
    "violation_rate_hundred": "of the last hundred episodes",
    "mean_excess": "mean excess",
    "return": "return",
    "cost": "cost",
    "bias_unsafe": "bias at unsafe states",
}

Cell = dict[tuple[str, str, int], dict[int, dict[str, float]]]  # (task, label, steps) -> seed -> measures


def main(*places: str) -> None:
    cells = gather(places)
    lengths = sorted({(task, steps) for task, _, steps in cells}, key=lambda key: (-key[1], key[0]))
    print(f"| task | pair | seeds | {' | '.join(MEASURES.values())} |")
    print("|---|---|---|" + "---|" * len(MEASURES))
    for base, other in PAIRS:
        changes = defaultdict(list)
        for task, steps in lengths:
            ours, theirs = cells.get((task, other, steps)), cells.get((task, base, steps))
            if not ours or not theirs:
                continue
            found = [compare(columns(theirs, name), columns(ours, name)) for name in MEASURES]
            seeds = f"{len(theirs)}, {len(ours)}"
            print(f"| {task} {steps / 1e6:g}M | {base} → {other} | {seeds} | {' | '.join(found)} |")
            for name in MEASURES:
                before, after = columns(theirs, name), columns(ours, name)
                if len(before) and len(after) and before.mean():
                    changes[name].append(after.mean() / before.mean() - 1)
        if any(len(shares) > 1 for shares in changes.values()):
            count = max(map(len, changes.values()))
            print(f"| mean of {count} | {base} → {other} | | {' | '.join(pooled(changes[name]) for name in MEASURES)} |")


def gather(places: tuple[str, ...]) -> Cell:
    cells: Cell = defaultdict(dict)
    for place in map(Path, places):
        for row in csv.DictReader((place / "measures.csv").read_text().splitlines()):
            key = row["task"], row["label"], int(float(row["steps"]))
            cells[key].setdefault(int(row["seed"]), {name: float(row.get(name) or "nan") for name in MEASURES})
    return cells


def columns(seeds: dict[int, dict[str, float]], name: str) -> np.ndarray:
    values = np.array([row[name] for row in seeds.values()])
    return values[~np.isnan(values)]


def compare(before: np.ndarray, after: np.ndarray) -> str:
    """Both means, and the difference with its interval."""
    if not len(before) or not len(after):
        return ""
    text = f"{before.mean():.3g} → {after.mean():.3g}"
    if min(len(before), len(after)) < 2:
        return text
    low, high = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    return f"{text} ({after.mean() - before.mean():+.3g} [{low:+.3g}, {high:+.3g}])"


def pooled(shares: list[float]) -> str:
    if not shares:
        return ""
    found = student_interval(np.array(shares))
    return f"{found.mean:+.0%}" + ("" if found.low is None else f" [{found.low:+.0%}, {found.high:+.0%}]")


if __name__ == "__main__":
    main(*sys.argv[1:])
