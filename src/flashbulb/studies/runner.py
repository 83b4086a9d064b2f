"""Runs the jobs of a study on a pool of workers, resumes what was killed, and writes the results."""

from __future__ import annotations

import time
from collections import Counter, deque
from pathlib import Path
from typing import Protocol

from rich.console import Console

from flashbulb.analysis.run_table import write_table
from flashbulb.errors import Interrupted, UsageError
from flashbulb.plots.study_figures import draw_study_figure
from flashbulb.shown_text import note_all
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.run_list import read_run, readable_runs
from flashbulb.studies.plan import Job, StudyPlan
from flashbulb.studies.run_process import RunExit
from flashbulb.studies.status import LiveTable, RunStatus
from flashbulb.training.graceful_stop import Wish, graceful_stop

MAX_KILLS = 3  # of a job at the same checkpoint
POLL_SECONDS = 0.1


class WorkerPool(Protocol):
    """Runs jobs: as processes of this machine (`LocalPool`) or as tasks of a cluster (`RayPool`)."""

    @property
    def size(self) -> int:
        """Number of jobs that run at the same time."""

    def has_free_slot(self) -> bool: ...

    def start(self, job: Job) -> None: ...

    def poll(self) -> list[tuple[Job, RunExit]]:
        """Jobs that have ended since the last call."""

    def stop(self) -> None:
        """Ask all jobs to stop such that they can be resumed; `poll` still reports them."""

    def close(self) -> None: ...


def run_study(plan: StudyPlan, pool: WorkerPool, console: Console, command: str) -> list[RunStatus]:
    """Run until every job is finished or failed. A signal stops all; `command`, which resumes, is then printed."""
    with RunDirectory(plan.path).locked(), LiveTable(plan, console, pool.size) as table:
        waiting = deque(job for job in plan.jobs if table.statuses[job.name].state != "finished")
        try:
            with graceful_stop() as wish:
                _run_jobs(plan, waiting, pool, table, wish)
        finally:
            pool.close()
    statuses = list(table.statuses.values())
    if wish.signal and any(status.state in ("interrupted", "waiting") for status in statuses):
        finished = sum(status.state == "finished" for status in statuses)
        raise Interrupted(
            f"stopped with {finished} of {len(plan.jobs)} runs finished; go on with: {command}", wish.code
        )
    return statuses


def _run_jobs(plan: StudyPlan, waiting: deque[Job], pool: WorkerPool, table: LiveTable, wish: Wish) -> None:
    retries, running, stopping = RetryPolicy(plan), set[str](), False
    while running or (waiting and not stopping):
        if wish.signal and not stopping:
            stopping = True
            pool.stop()
        while waiting and not stopping and pool.has_free_slot() and (job := _next_unlocked(plan, waiting)):
            plan.failure_path(job).unlink(missing_ok=True)
            pool.start(job)
            running.add(job.name)
            table.job_started(job)
        for job, (status, reason) in pool.poll():
            running.discard(job.name)
            if status in ("killed", "stopped") and not stopping:  # by another process
                if retries.may_retry(job):
                    waiting.append(job)
                    table.job_ended(job, f"{reason}; will be resumed")
                    continue
                status = "failed"
            if status == "failed":
                plan.failure_path(job).write_text(reason + "\n")
            table.job_ended(job, reason or status)
        table.refresh()
        time.sleep(POLL_SECONDS)


class RetryPolicy:
    """A killed job is resumed unless it was killed MAX_KILLS times without a new checkpoint."""

    def __init__(self, plan: StudyPlan) -> None:
        self.plan = plan
        self.kills: Counter[tuple[str, int]] = Counter()

    def may_retry(self, job: Job) -> bool:
        reached = max(Checkpoints(self.plan.run_path(job) / "checkpoints").iterations(), default=0)
        self.kills[job.name, reached] += 1
        return self.kills[job.name, reached] < MAX_KILLS


def _next_unlocked(plan: StudyPlan, waiting: deque[Job]) -> Job | None:
    """Take the first job whose directory is not locked: a process of an earlier study may still be writing to it."""
    for job in waiting:
        if not RunDirectory(plan.run_path(job)).is_locked():
            waiting.remove(job)
            return job
    return None


def write_results(plan: StudyPlan) -> list[Path]:
    """Write the table and the figures of all finished runs in the study's directory; return the files to look at.

    A run that cannot be read, and a figure for which there is nothing yet, are named and left out.
    """
    begun = [run for run in (plan.path / "runs" / name for name in plan.labels) if (run / "config.json").exists()]
    readable, left_out = readable_runs(begun)
    note_all(left_out)
    runs = [run for run in readable if read_run(run).status == "finished"]
    if not runs:
        return []
    write_table(plan.path, runs, plan.labels)
    written = [plan.path / "table.md"]
    for kind in plan.kinds:
        path = plan.path / ("figure.png" if kind == plan.kinds[0] else f"figure-{kind}.png")
        try:
            draw_study_figure(kind, runs, path, plan.labels)
            written.append(path)
        except UsageError as error:
            note_all([f"{path.name} is left out: {str(error).removeprefix('figure: ')}"])
    return written
