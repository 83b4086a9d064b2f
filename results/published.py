"""Our runs beside OmniSafe's published results: `python -m results.published`.

A row per task and algorithm with runs of ten million steps whose policies were evaluated (evaluations.csv). Of a seed
that two directories have evaluated, the first counts.
"""

from __future__ import annotations

from benchmarks.learning import learning_table

from results.tables import DIRECTORIES, ROOT, Row, rows_of

STEPS = 10_000_000  # of what is published


def main() -> None:
    measured: dict[tuple[str, str, str], Row] = {}
    played = {}
    for place in (ROOT / name for name in DIRECTORIES):
        evaluations = {row["run"]: row for row in rows_of(place / "evaluations.csv")}
        for row in rows_of(place / "measures.csv"):
            key = row["task"], row["label"], row["seed"]
            if row["run"] in evaluations and float(row["steps"]) == STEPS and key not in measured:
                measured[key], played[key] = row, evaluations[row["run"]]
    print(learning_table([measured[key] for key in sorted(measured)], played.values()), end="")


if __name__ == "__main__":
    main()
