"""`flashbulb runs`: a line per run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from flashbulb.cli.options import parse


@dataclass(frozen=True)
class RunsOptions:
    """List runs with their status, and the return and cost of the last tenth of their iterations."""

    directory: Annotated[Path, tyro.conf.Positional] = Path("runs")
    """Where the runs are."""


def main(arguments: list[str]) -> int:
    options = parse(RunsOptions, arguments, "flashbulb runs")
    from rich.console import Console
    from rich.table import Table

    from flashbulb.storage.run_list import list_runs

    listed = list_runs(options.directory)
    if not listed:
        print(f"No runs in {options.directory}.")
        return 0
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold")
    for title in ("algorithm", "task", "status"):
        table.add_column(title, overflow="fold")
    for title in ("steps", "return", "cost", "limit", "violated"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in listed:
        numbers = (
            f"{run.steps:,.0f}",
            _number(run.returns, ".2f"),
            _number(run.cost, ".2f"),
            f"{run.config.cost_limit:g}",
            _number(run.violation_rate, ".0%"),
        )
        table.add_row(run.name, run.config.algorithm, run.config.env, run.status, *numbers)
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)  # a file or a pipe has no edge to wrap at
    console.print(table)
    return 0


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
