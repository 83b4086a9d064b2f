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

    from flashbulb.studies.plan import StudyPlan
    from flashbulb.studies.runner import WorkerPool
    from flashbulb.studies.status import RunStatus


@dataclass(frozen=True)
class StudyOptions:
    """Run a set of runs, then compute statistics, draw the paper's figure and write a table.

    Called again, it continues: finished runs are skipped, interrupted ones are resumed from their checkpoints.
    Without a name it lists the studies.
    """

    name: Annotated[str | None, Positional] = None
    """Name of the study."""
    scale: Literal["smoke", "short", "medium", "paper"] = "short"
    """smoke: a few thousand steps, as a test; short: 1e6 and medium: 2e6 steps, 3 seeds; paper: 1e7 steps, 6 seeds."""
    status: bool = False
    """Only print progress and the expected remaining time, a row for each algorithm and task."""
    every_run: bool = False
    """With --status: a row for each run."""
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
    bias_every: PositiveInt | None = None
    """Measure the cost critic's bias every so many iterations (default: only in studies whose figure shows it)."""
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
    from flashbulb.studies.plan import WHOLE_STUDY, StudyRequest, last_request, make_plan, save_plan

    request = StudyRequest(options.tasks, options.algorithms, options.seeds, options.steps, options.bias_every)
    if options.status and request == WHOLE_STUDY:
        request = last_request(options.name, options.scale, options.directory)
    plan = make_plan(options.name, options.scale, options.directory, request)
    console = wide_console()
    if options.status:
        return _show(plan, options, console)
    from flashbulb.studies.runner import run_study, write_results

    plugins = dict.fromkeys(name for job in plan.jobs for name in job.config.plugins)
    words = [*arguments, *(word for name in plugins for word in ("--plugin", name))]
    command = f"flashbulb study {shlex.join(words)}"
    plan = save_plan(plan, command)
    statuses = run_study(plan, _worker_pool(options, plan), console, command)
    for path in write_results(plan):
        console.print(str(path), soft_wrap=True, highlight=False, markup=False)
    _print_failures(plan, statuses, console)
    return 1 if any(status.state == "failed" for status in statuses) else 0


def _worker_pool(options: StudyOptions, plan: StudyPlan) -> WorkerPool:
    if options.on == "ray":
        from flashbulb.studies.ray_cluster import RayPool

        return RayPool(plan, options.ray_address, options.processes)
    from flashbulb.studies.run_process import LocalPool

    return LocalPool(plan, options.processes)


def _validate(options: StudyOptions) -> None:
    if options.ray_address is not None and options.on != "ray":
        raise UsageError("ray_address: it is for --on ray only.")
    if options.name is None and options.status:
        raise UsageError("name: missing; --status needs the name of a study.")
    if options.every_run and not options.status:
        raise UsageError("every_run: it is for --status only.")


def _list() -> int:
    from flashbulb.studies.catalogue import STUDIES

    for study in STUDIES.values():
        print(f"{study.name:<18}{study.figure:<18}{study.summary}")
    return 0


def _show(plan: StudyPlan, options: StudyOptions, console: Console) -> int:
    from flashbulb.cores import usable_cores
    from flashbulb.studies.status import group_table, read_study_status, status_line, status_table

    statuses = read_study_status(plan)
    running = sum(status.state == "running" for status in statuses)
    console.print(status_table(statuses, statuses) if options.every_run else group_table(statuses, plan.labels))
    console.print(status_line(statuses, options.processes or running or len(usable_cores())), highlight=False)
    _print_failures(plan, statuses, console)
    return 0


def _print_failures(plan: StudyPlan, statuses: list[RunStatus], console: Console) -> None:
    for status in statuses:
        if status.state == "failed":
            log = plan.log_path(status.job)
            console.print(
                f"{status.job.name} failed: {status.reason} ({log})", soft_wrap=True, highlight=False, markup=False
            )
