"""How far a study is: a line per run, read from its directory alone, and the time that is left."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from flashbulb.config import Config
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.run_list import read_run
from flashbulb.studies.plan import Job, Plan

STATES = ("finished", "running", "interrupted", "failed", "waiting")
COLOURS = {"finished": "green", "running": "cyan", "interrupted": "yellow", "failed": "red", "waiting": "dim"}


class Line(NamedTuple):
    """A run; numbers are nan before its first iteration, and `returns` and `cost` are means of its last tenth."""

    job: Job
    state: str
    done: int = 0
    steps: float = 0
    returns: float = math.nan
    cost: float = math.nan
    seconds: float = math.nan  # that an iteration takes
    reason: str = ""

    @property
    def ahead(self) -> int:
        return 0 if self.state == "finished" else self.job.config.iterations - self.done

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.job.config.horizon * self.job.config.num_envs / self.seconds


def look(plan: Plan, job: Job) -> Line:
    run = plan.run(job)
    reason = plan.failure(job).read_text().strip() if plan.failure(job).exists() else ""
    if not (run / "config.json").exists():
        return Line(job, "failed" if reason else "waiting", reason=reason)
    listed = read_run(run)
    done = round(listed.steps / (job.config.horizon * job.config.num_envs))
    state = listed.status
    if state != "running" and not is_finished(plan, job, done):
        state = "failed" if reason else "interrupted"
    return Line(job, state, done, listed.steps, listed.returns, listed.cost, _seconds(run), reason)


def look_at_all(plan: Plan) -> list[Line]:
    """From outside, by somebody who does not run the study.

    A run on this machine shows by its lock. One on a cluster has a mark, true as long as a driver lives.
    """
    driven = RunDirectory(plan.path).is_locked()
    lines = [look(plan, job) for job in plan.jobs]
    return [
        line._replace(state="running") if driven and line.ahead and plan.mark(line.job).exists() else line
        for line in lines
    ]


def is_finished(plan: Plan, job: Job, done: int) -> bool:
    """Its last row is written and its last state is safe: whatever ended it before that, there is more to do."""
    last = job.config.iterations
    return done >= last and Checkpoints(RunDirectory(plan.run(job)).checkpoints).path(last).exists()


def _seconds(run: Path) -> float:
    """Of a usual iteration; the first ones compile."""
    try:
        taken = read_csv(RunDirectory(run).timing)["seconds"]
    except (OSError, ValueError, KeyError):  # none yet
        return math.nan
    return float(np.median(taken)) if len(taken) else math.nan


def time_left(lines: Sequence[Line], processes: int) -> float:
    """Seconds; runs that have not begun are taken to be like others of their kind. nan while nobody knows.

    All share the work, but no run is shared.
    """
    each = [line.ahead * expected_seconds(line, lines) for line in lines if line.ahead]
    return max(float(np.sum(each)) / processes, float(np.max(each, initial=0.0)))


def expected_seconds(line: Line, lines: Sequence[Line]) -> float:
    """Of one of its iterations: its own, those of the same algorithm and task, of the same task, of any run."""
    kinds: tuple[Callable[[Config], object], ...] = (lambda c: (c.algorithm, c.env), lambda c: c.env, lambda c: None)
    if not math.isnan(line.seconds):
        return line.seconds
    for kind in kinds:
        mine = kind(line.job.config)
        known = [o.seconds for o in lines if not math.isnan(o.seconds) and kind(o.job.config) == mine]
        if known:
            return float(np.mean(known))
    return math.nan


def table(lines: Iterable[Line], lines_of_all: Sequence[Line]) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    shown.add_column("run", overflow="fold")
    shown.add_column("state", no_wrap=True)
    for title in ("iteration", "steps", "return", "cost", "steps/s", "left"):
        shown.add_column(title, justify="right", no_wrap=True)
    for line in lines:
        left = line.ahead * expected_seconds(line, lines_of_all)
        shown.add_row(
            line.job.name,
            f"[{COLOURS[line.state]}]{line.state}[/]",
            f"{line.done}/{line.job.config.iterations}",
            f"{line.steps:,.0f}",
            number(line.returns, ".2f"),
            number(line.cost, ".2f"),
            number(line.rate, ",.0f"),
            duration(left) if line.ahead else "",
        )
    return shown


def summary(lines: Sequence[Line], processes: int) -> str:
    """`3 finished, 2 running, 19 waiting; 1:20:00 left`."""
    counts = Counter(line.state for line in lines)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    left = time_left(lines, processes)
    if not any(line.ahead for line in lines):
        return said
    return f"{said}; {duration(left)} left" if not math.isnan(left) else f"{said}; time left not known yet"


def number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def duration(seconds: float) -> str:
    return "-" if math.isnan(seconds) else str(datetime.timedelta(seconds=math.ceil(seconds)))
