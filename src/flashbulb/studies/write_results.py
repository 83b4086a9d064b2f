"""What comes out of a study: its table and its figures, from the runs that are finished."""

from __future__ import annotations

from pathlib import Path

from flashbulb.storage.run_list import read_run
from flashbulb.plots.study_figures import draw_study_figure
from flashbulb.studies.plan import Plan
from flashbulb.studies.table import tabulate, write_table


def write_outcome(plan: Plan) -> list[Path]:
    """Of all runs that were ever asked for in this directory; returns the files to look at, none if no run is done."""
    runs = [plan.path / "runs" / name for name in plan.labels]
    runs = [run for run in runs if (run / "config.json").exists() and read_run(run).status == "finished"]
    if not runs:
        return []
    write_table(plan.path, runs, plan.labels)
    written = [plan.path / "table.md"]
    for kind in plan.study.kinds:
        path = plan.path / ("figure.png" if kind == plan.study.kinds[0] else f"figure-{kind}.png")
        draw_study_figure(kind, runs, path, tabulate, plan.labels)
        written.append(path)
    return written
