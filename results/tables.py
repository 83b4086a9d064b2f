"""What the scripts beside this one share: rows of CSV files, and rows of Markdown tables."""

from __future__ import annotations

import csv
from pathlib import Path

Row = dict[str, str]
LIMIT = 25.0  # of all runs in results/, but for the study thresholds


def rows_of(path: Path) -> list[Row]:
    """None where there is no such file."""
    return [*csv.DictReader(path.read_text().splitlines())] if path.exists() else []


def print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")


def short(task: str) -> str:
    """SafetyHopperVelocity-v1 is Hopper in a table."""
    return task.split("-")[0].removeprefix("Safety").removesuffix("Velocity")
