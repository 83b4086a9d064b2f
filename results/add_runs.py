"""Adds finished runs to a directory of results: `python -m results.add_runs results/limit_paper STUDY_DIRECTORY...`.

measures.csv, a file of curves for each task and, where there are such measurements, bias.csv and evaluations.csv get
the new runs, where a run of the same name replaces the old one, and the tables are made again from all measures. So
results of several sessions and machines become one table without the runs themselves.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from flashbulb.analysis.run_table import TableRow, summarise, tabulate, write_tables_of
from flashbulb.storage.run_list import read_run
from results.tables import Row, rows_of, short

CURVES = (
    *("run", "iteration", "steps", "return", "cost", "finished_cost", "cost_standard_error"),
    *("margin", "lambda", "beta", "memory_size", "entropy"),
)
BIAS = (
    *("run", "iteration", "steps", "critic_bias_rollout", "critic_bias_rollout_risky", "critic_bias_rollout_initial"),
    *("critic_r2", "true_cost_value", "true_cost_value_risky", "true_cost_value_initial"),
)
EVALUATIONS = ("run", "episodes", "return", "cost")  # as written by benchmarks/learning.py
TEXTS = {"run", "task", "label", "algorithm", "commit", "directory"}


def main(results: str, *studies: str) -> None:
    place = Path(results)
    place.mkdir(exist_ok=True)
    measured = {str(row["run"]): row for row in old_measures(place / "measures.csv")}
    curves = [row for path in sorted(place.glob("curves*.csv")) for row in rows_of(path)]
    bias, evaluations = rows_of(place / "bias.csv"), rows_of(place / "evaluations.csv")
    for study in map(Path, studies):
        labels = json.loads((study / "study.json").read_text())["labels"]
        runs = [study / "runs" / name for name in labels if (study / "runs" / name / "config.json").exists()]
        runs = [run for run in runs if read_run(run).status == "finished"]
        found = zip(runs, tabulate(runs, labels)[0], strict=True)
        measured |= {run.name: row | {"commit": commit_of(run)} for run, row in found}
        names = {run.name for run in runs}
        lines = [(run.name, row) for run in runs for row in rows_of(run / "metrics.csv")]
        played = [(row["run"], row) for row in rows_of(study / "evaluations.csv") if row["run"] in names]
        curves = without(curves, names) + [line(*one, CURVES) for one in lines]
        measurements = [line(*one, BIAS) for one in lines]
        bias = without(bias, names) + [row for row in measurements if "critic_bias_rollout" in row]
        evaluations = without(evaluations, names) + [line(*one, EVALUATIONS) for one in played]
    rows = sorted(measured.values(), key=lambda row: (str(row["task"]), str(row["label"]), float(row["seed"])))
    write_tables_of(place, rows, summarise(rows))
    write(place / "bias.csv", BIAS, bias)
    write(place / "evaluations.csv", EVALUATIONS, evaluations)
    tasks = {run: str(row["task"]) for run, row in measured.items()}
    write_curves(place, curves, tasks)


def commit_of(run: Path) -> str:
    """The commit of the code that the run was started with."""
    return str(json.loads((run / "config.json").read_text()).get("commit", ""))[:7]


def write_curves(place: Path, curves: list[Row], tasks: dict[str, str]) -> None:
    """A file for each task, so that none becomes large."""
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in curves:
        by_task[tasks[row["run"]]].append(row)
    for path in place.glob("curves*.csv"):
        path.unlink()
    for task, rows in by_task.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", short(task)).lower()  # PointGoal1 is point_goal1
        write(place / f"curves_{name}.csv", CURVES, sorted(rows, key=lambda row: row["run"]))


def write(path: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    if rows:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


def without(rows: list[Row], runs: set[str]) -> list[Row]:
    return [row for row in rows if row["run"] not in runs]


def old_measures(path: Path) -> list[TableRow]:
    """Measures as they were before they were written: a missing number is NaN."""
    return [typed(row) for row in rows_of(path)]


def typed(row: Row) -> TableRow:
    return {name: value(name, text) for name, text in row.items()}


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
