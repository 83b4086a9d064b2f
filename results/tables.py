"""What the scripts beside this one share: the runs of all directories as one collection, and rows of tables."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

Row = dict[str, str]
LIMIT = 25.0  # of all runs in results/, but for the study thresholds
ROOT = Path(__file__).parent
# The runs that docs/results.md is about. Of a seed that two directories have, the first counts.
DIRECTORIES = (
    *("claims_paper", "limit_paper", "baselines_paper", "versus_base_paper", "constants_paper", "thresholds_paper"),
    *("neighbours_paper", "projection_paper", "claims_medium", "limit_medium"),
)


class Cell(NamedTuple):
    """Runs that differ in nothing but their seed."""

    task: str  # short
    label: str
    steps: int

    @property
    def place(self) -> str:
        """As a table has it: "PointGoal1, 10M"."""
        return f"{self.task}, {self.steps / 1e6:g}M"


Runs = dict[Cell, dict[int, Row]]  # measures by seed


def gather(directories: Iterable[Path] = ()) -> Runs:
    """The rows of all measures.csv, by default of DIRECTORIES, each with its "directory" added."""
    runs: Runs = defaultdict(dict)
    for place in [*directories] or [ROOT / name for name in DIRECTORIES]:
        for row in rows_of(place / "measures.csv"):
            cell = Cell(short(row["task"]), row["label"], int(float(row["steps"])))
            runs[cell].setdefault(int(row["seed"]), row | {"directory": str(place)})
    return runs


def column(seeds: dict[int, Row], name: str) -> np.ndarray:
    """A measure over seeds, of those that have it."""
    values = np.array([number(row, name) for row in seeds.values()])
    return values[~np.isnan(values)]


def number(row: Row, name: str) -> float:
    return float(row.get(name) or "nan")


def curve(run: Row, name: str) -> np.ndarray:
    """Steps and values (2, points) of a column of the run's curves or bias measurements; (2, 0) if it has none."""
    file = "bias" if name.startswith(("critic", "true_cost")) else "curves*"
    lines = _lines_by_run(Path(run["directory"]), file).get(run["run"], [])
    return np.array([(number(row, "steps"), number(row, name)) for row in lines if row.get(name)]).reshape(-1, 2).T


@cache
def _lines_by_run(directory: Path, file: str) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for path in sorted(directory.glob(f"{file}.csv")):
        for row in rows_of(path):
            found[row["run"]].append(row)
    return found


def rows_of(path: Path) -> list[Row]:
    """None where there is no such file."""
    return [*csv.DictReader(path.read_text().splitlines())] if path.exists() else []


def print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")


def print_head(*cells: str) -> None:
    print_row(*cells)
    print_row(*["---"] * len(cells))


def spread(values: np.ndarray, form: str) -> str:
    """The mean of those that are known, and their range: "9 [8, 10]" in the format `form`."""
    known = values[~np.isnan(values)]
    if not len(known):
        return "-"
    mean, low, high = (format(value, form) for value in (known.mean(), known.min(), known.max()))
    return mean if low == high else f"{mean} [{low}, {high}]"


def short(task: str) -> str:
    """SafetyHopperVelocity-v1 is Hopper in a table."""
    return task.split("-")[0].removeprefix("Safety").removesuffix("Velocity")
