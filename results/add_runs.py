"""Adds finished runs to a directory of results: `python -m results.add_runs results/limit_paper STUDY_DIRECTORY...`.

measures.csv, curves.csv and, where there are such measurements, bias.csv and evaluations.csv get the new runs, where a
run of the same name replaces the old one, and the tables are made again from all measures. So results of several
sessions and machines become one table without the runs themselves.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from flashbulb.analysis.run_table import TableRow, summarise, tabulate, write_tables_of
from flashbulb.storage.run_list import read_run
from results.tables import Row, rows_of

CURVES = (
    *("run", "iteration", "steps", "return", "cost", "finished_cost", "cost_standard_error"),
    *("margin", "lambda", "beta", "memory_size"),
)
BIAS = (
    *("run", "iteration", "steps", "critic_bias_rollout", "critic_bias_rollout_risky", "critic_bias_rollout_initial"),
    *("critic_r2", "true_cost_value", "true_cost_value_risky", "true_cost_value_initial"),
)
EVALUATIONS = ("run", "episodes", "return", "cost")  # as written by benchmarks/learning.py
TEXTS = {"run", "task", "label", "algorithm"}


def main(results: str, *studies: str) -> None:
    place = Path(results)
    place.mkdir(exist_ok=True)
    measured = {str(row["run"]): row for row in old_measures(place / "measures.csv")}
    files = {"curves.csv": CURVES, "bias.csv": BIAS, "evaluations.csv": EVALUATIONS}
    lines = {name: rows_of(place / name) for name in files}
    for study in map(Path, studies):
        labels = json.loads((study / "study.json").read_text())["labels"]
        runs = [study / "runs" / name for name in labels if (study / "runs" / name / "config.json").exists()]
        runs = [run for run in runs if read_run(run).status == "finished"]
        measured |= {str(row["run"]): row for row in tabulate(runs, labels)[0]}
        names = {run.name for run in runs}
        for name, columns in files.items():
            lines[name] = [row for row in lines[name] if row["run"] not in names]
            found = [line(run.name, row, columns) for run in runs for row in rows_of(run / "metrics.csv")]
            if name == "evaluations.csv":
                found = [line(row["run"], row, columns) for row in rows_of(study / name) if row["run"] in names]
            lines[name] += [row for row in found if columns[-1] in row or name == "curves.csv"]
    rows = sorted(measured.values(), key=lambda row: (str(row["task"]), str(row["label"]), float(row["seed"])))
    write_tables_of(place, rows, summarise(rows))
    for name, columns in files.items():
        if lines[name]:
            with (place / name).open("w", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
                writer.writeheader()
                writer.writerows(lines[name])


def old_measures(path: Path) -> list[TableRow]:
    """Measures as they were before they were written: a missing number is NaN."""
    return [{name: value(name, text) for name, text in row.items()} for row in rows_of(path)]


def value(name: str, text: str) -> str | float:
    if name in TEXTS:
        return text
    return int(text) if name == "seed" else float(text or "nan")


def line(run: str, row: Row, columns: tuple[str, ...]) -> Row:
    """The columns of a row of metrics.csv that have a number."""
    numbers = {name: float(row.get(name) or "nan") for name in columns[1:]}
    return {"run": run} | {name: f"{number:g}" for name, number in numbers.items() if number == number}


if __name__ == "__main__":
    main(*sys.argv[1:])
