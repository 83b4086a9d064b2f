"""The command `flashbulb study`: the paper's experiments, each as one command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from flashbulb.cli.options import parse_options, wide_console
from flashbulb.config import NonNegativeInt, PositiveInt
from flashbulb.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from flashbulb.studies.plan import Plan
    from flashbulb.studies.runner import Workers
    from flashbulb.studies.status import Line


@dataclass(frozen=True)
class StudyOptions:
    """Run a set of runs, then compute statistics, draw the paper's figure and write a table.

    Called again, it continues: finished runs are skipped, interrupted ones are resumed from their checkpoints.
    Without a name it lists the studies.
    """

    name: Annotated[str | None, Positional] = None
    """Name of the study."""
    scale: Literal["smoke", "short", "paper"] = "short"
    """smoke: a few thousand steps, as a test; short: 1e6 steps, 3 seeds; paper: 1e7 steps, 6 seeds."""
    status: bool = False
    """Only print progress and the expected remaining time."""
    directory: Path = Path("studies")
    """Directory of studies; this one is written to NAME-SCALE below it."""
    tasks: tuple[str, ...] = ()
    """Use these tasks; they need not be the paper's (default: the study's)."""
    algorithms: tuple[str, ...] = ()
    """Use these algorithms or labels; they need not be the paper's (default: the study's)."""
    seeds: tuple[NonNegativeInt, ...] = ()
    """Use these seeds (default: the scale's)."""
    steps: PositiveInt | None = None
    """Environment steps of each run (default: the scale's)."""
    processes: PositiveInt | None = None
    """Runs at a time (default: one per core, here or in the cluster)."""
    on: Literal["here", "ray"] = "here"
    """Run on this machine, or on a Ray cluster (needs `pip install flashbulb[ray]`)."""
    ray_address: str | None = None
    """Address of the cluster, such as auto or 10.0.0.1:6379 (default: a Ray of this machine's own)."""


def study_command(arguments: list[str]) -> int:
    """`flashbulb study NAME`: run a study, or show its status."""
    options = parse_options(StudyOptions, arguments, "flashbulb study")
    _validate(options)
    if options.name is None:
        return _list()
    from flashbulb.studies.plan import EVERYTHING, Request, last_request, make_plan, settle

    request = Request(options.tasks, options.algorithms, options.seeds, options.steps)
    if options.status and request == EVERYTHING:
        request = last_request(options.name, options.scale, options.directory)
    plan = make_plan(options.name, options.scale, options.directory, request)
    console = wide_console()
    if options.status:
        return _show(plan, options.processes, console)
    from flashbulb.studies.runner import execute

    command = f"flashbulb study {shlex.join(arguments)}"
    plan = settle(plan, command)
    lines = execute(plan, _workers(options, plan), console, command)
    from flashbulb.studies.write_results import write_outcome

    for path in write_outcome(plan):
        console.print(str(path), soft_wrap=True, highlight=False)
    _name_failures(plan, lines, console)
    return 1 if any(line.state == "failed" for line in lines) else 0


def _workers(options: StudyOptions, plan: Plan) -> Workers:
    if options.on == "ray":
        from flashbulb.studies.ray_cluster import RayCluster

        return RayCluster(plan, options.ray_address, options.processes)
    from flashbulb.studies.local_pool import Cores

    return Cores(plan, options.processes)


def _validate(options: StudyOptions) -> None:
    if options.ray_address is not None and options.on != "ray":
        raise UsageError("ray_address: it is for --on ray only.")
    if options.name is None and options.status:
        raise UsageError("name: missing; --status needs the name of a study.")


def _list() -> int:
    from flashbulb.studies.catalogue import STUDIES

    for study in STUDIES.values():
        print(f"{study.name:<18}{study.figure:<18}{study.summary}")
    return 0


def _show(plan: Plan, processes: int | None, console: Console) -> int:
    from flashbulb.studies.local_pool import usable_cores
    from flashbulb.studies.status import look_at_all, summary, table

    lines = look_at_all(plan)
    running = sum(line.state == "running" for line in lines)
    console.print(table(lines, lines))
    console.print(summary(lines, processes or running or len(usable_cores())), highlight=False)
    _name_failures(plan, lines, console)
    return 0


def _name_failures(plan: Plan, lines: list[Line], console: Console) -> None:
    for line in lines:
        if line.state == "failed":
            console.print(
                f"{line.job.name} failed: {line.reason} ({plan.log(line.job)})", soft_wrap=True, highlight=False
            )
