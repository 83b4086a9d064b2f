"""Our runs beside OmniSafe's published results: `python -m results.published`.

A row per task and algorithm with runs of ten million steps whose policies were evaluated (evaluations.csv).
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.learning import learning_table

from results.tables import gather, rows_of


def main() -> None:
    measured, played = [], []
    for cell, seeds in sorted(gather().items()):
        for row in seeds.values():
            evaluated = [e for e in rows_of(Path(row["directory"]) / "evaluations.csv") if e["run"] == row["run"]]
            if evaluated and cell.steps == 10_000_000:
                measured.append(row)
                played += evaluated
    print(learning_table(measured, played), end="")


if __name__ == "__main__":
    main()
