"""Our runs beside OmniSafe's published results: `python -m results.published DIRECTORY...`.

A row per task and algorithm that was evaluated, from `measures.csv` and `evaluations.csv` of all directories. Where two
have the same seed, the first counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.learning import learning_table

from results.tables import Row, rows_of


def main(*places: str) -> None:
    measured: dict[tuple[str, str, str], Row] = {}
    played: dict[str, Row] = {}
    for place in map(Path, places):
        evaluations = {row["run"]: row for row in rows_of(place / "evaluations.csv")}
        for row in rows_of(place / "measures.csv"):
            key = row["task"], row["label"], row["seed"]
            if row["run"] in evaluations and key not in measured:
                measured[key], played[row["run"]] = row, evaluations[row["run"]]
    rows = [measured[key] for key in sorted(measured)]
    print(learning_table(rows, played.values()), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
