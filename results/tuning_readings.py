"""Measures of tuning runs as one table: `python -m results.tuning_readings results/tuning_readings.csv RUN...`.

A row per finished run: what was asked for besides the algorithm's defaults, and its measures. Violations and excess are
of a limit of 25, also where `cost_limit`, the limit of the run, is another. A table that exists keeps the rows of other
runs, so that it grows over sessions.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from flashbulb.algorithms.registry import configure
from flashbulb.analysis.run_measures import measures
from flashbulb.config import Config, flat_settings
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_metrics, read_run
from results.tables import LIMIT, Row, rows_of

MEASURES = ("steps", "return", "cost", "bias_unsafe", "intrinsic_return", "anticipation", "beta")
PLACE = ("algorithm", "env", "seed", "steps", "name", "runs_dir", "threads", "cost_limit")


def main(table: str, *runs: str) -> None:
    place = Path(table)
    rows = {row["run"]: row for row in rows_of(place)}
    for run in map(Path, runs):
        if read_run(run).status == "finished":
            rows[run.name] = row_of(run)
    with place.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(next(iter(rows.values()))), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=lambda row: (row["task"], row["run"])))


def row_of(run: Path) -> Row:
    config, found, cost = load_config(run), measures(run), read_metrics(run)["cost"]
    late = cost[len(cost) // 2 :]
    safety = {
        "violation_rate": np.mean(cost > LIMIT),
        "violation_rate_late": np.mean(late > LIMIT),
        "violation_rate_hundred": found["violation_rate_hundred"] if config.limit == LIMIT else np.nan,
        "mean_excess": np.mean(np.maximum(cost - LIMIT, 0)),
        "cost_late": np.mean(late),
    }
    numbers = {name: f"{value:.5g}" for name, value in ({name: found[name] for name in MEASURES} | safety).items()}
    names = {"run": run.name, "task": config.env, "algorithm": config.algorithm, "settings": settings_of(config)}
    return names | {"seed": str(config.seed), "cost_limit": f"{config.limit:g}"} | numbers


def settings_of(config: Config) -> str:
    """What differs from the algorithm's defaults."""
    usual = flat_settings(configure(config.algorithm, config.env))
    found = flat_settings(config)
    return " ".join(f"{name}={found[name]}" for name in found if found[name] != usual[name] and name not in PLACE)


if __name__ == "__main__":
    main(*sys.argv[1:])
