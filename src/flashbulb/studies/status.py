"""The progress of a study: the status of each run, read from its directory, and the tables that show it."""

from __future__ import annotations

import datetime
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.run_list import read_run
from flashbulb.studies.plan import Job, StudyPlan

STATES = ("finished", "running", "interrupted", "failed", "waiting")
STATE_STYLES = {"finished": "green", "running": "cyan", "interrupted": "yellow", "failed": "red", "waiting": "dim"}
PRIORITY = ("running", "failed", "interrupted", "waiting", "finished")  # shown first if not all runs fit the screen
REFRESH_SECONDS = {"table": 1.0, "lines": 30.0}


class RunStatus(NamedTuple):
    """Status of a run. Numbers are nan before its first iteration; `returns` and `cost` are of the last tenth."""

    job: Job
    state: str
    done: int = 0  # iterations
    steps: float = 0
    returns: float = math.nan
    cost: float = math.nan
    seconds: float = math.nan  # per iteration
    reason: str = ""  # of a failure

    @property
    def remaining(self) -> int:
        """Iterations that are still to do; a failed run has none until it is tried again."""
        return 0 if self.state in ("finished", "failed") else self.job.config.iterations - self.done

    @property
    def steps_per_second(self) -> float:
        return self.job.config.horizon * self.job.config.num_envs / self.seconds


def read_status(plan: StudyPlan, job: Job) -> RunStatus:
    """Read the status of a run from its directory."""
    run, failure = plan.run_path(job), plan.failure_path(job)
    reason = failure.read_text().strip() if failure.exists() else ""
    if not (run / "config.json").exists():
        return RunStatus(job, "failed" if reason else "waiting", reason=reason)
    try:
        listed = read_run(run)
    except UsageError as error:  # one damaged run does not hide the others
        return RunStatus(job, "failed", reason=str(error).removeprefix("run: "))
    done = round(listed.steps / (job.config.horizon * job.config.num_envs))
    state = listed.status
    if state != "running" and not _is_finished(run, job.config.iterations, done):
        state = "failed" if reason else "interrupted"
    return RunStatus(job, state, done, listed.steps, listed.returns, listed.cost, _seconds_per_iteration(run), reason)


def read_study_status(plan: StudyPlan) -> list[RunStatus]:
    """Read the status of every run, from a process that does not run the study.

    A local run is running if its directory is locked. A remote one has a marker, valid while the study's driver lives.
    """
    has_driver = RunDirectory(plan.path).is_locked()
    statuses = [read_status(plan, job) for job in plan.jobs]
    return [
        status._replace(state="running")
        if has_driver and status.remaining and plan.remote_marker(status.job).exists()
        else status
        for status in statuses
    ]


def _is_finished(run: Path, iterations: int, done: int) -> bool:
    """Whether all metrics and the last checkpoint are written."""
    return done >= iterations and Checkpoints(RunDirectory(run).checkpoints).path(iterations).exists()


def _seconds_per_iteration(run: Path) -> float:
    """The median, because the first iterations compile; nan if there is none yet."""
    try:
        seconds = read_csv(RunDirectory(run).timing)["seconds"]
    except (OSError, ValueError, KeyError):
        return math.nan
    return float(np.median(seconds)) if len(seconds) else math.nan


def time_left(statuses: Sequence[RunStatus], processes: int) -> float:
    """Expected seconds until all runs are finished; nan if no run gives an estimate yet.

    It is the total work divided by the processes, and at least the work of the longest run.
    """
    each = [status.remaining * expected_seconds(status, statuses) for status in statuses if status.remaining]
    return max(float(np.sum(each)) / processes, float(np.max(each, initial=0.0)))


def expected_seconds(status: RunStatus, statuses: Sequence[RunStatus]) -> float:
    """Seconds per iteration: the run's own, else the mean of the same algorithm and task, of the task, of all runs."""
    kinds: tuple[Callable[[Config], object], ...] = (lambda c: (c.algorithm, c.env), lambda c: c.env, lambda c: None)
    if not math.isnan(status.seconds):
        return status.seconds
    for kind in kinds:
        own = kind(status.job.config)
        known = [other.seconds for other in statuses if not math.isnan(other.seconds) and kind(other.job.config) == own]
        if known:
            return float(np.mean(known))
    return math.nan


def status_table(shown: Iterable[RunStatus], statuses: Sequence[RunStatus]) -> Table:
    """A table of the runs in `shown`; `statuses`, those of all runs, serve to estimate the time left."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state", no_wrap=True)
    for title in ("iteration", "steps", "return", "cost", "steps/s", "left"):
        table.add_column(title, justify="right", no_wrap=True)
    for status in shown:
        left = status.remaining * expected_seconds(status, statuses)
        table.add_row(
            status.job.name,
            f"[{STATE_STYLES[status.state]}]{status.state}[/]",
            f"{status.done}/{status.job.config.iterations}",
            f"{status.steps:,.0f}",
            _number(status.returns, ".2f"),
            _number(status.cost, ".2f"),
            _number(status.steps_per_second, ",.0f"),
            _duration(left) if status.remaining else "",
        )
    return table


def group_table(statuses: Sequence[RunStatus], labels: Mapping[str, str]) -> Table:
    """A table with a row for each label and task: how many runs are in which state, and means over those begun."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("algorithm", "task", "runs"):
        table.add_column(title, overflow="fold")
    for title in ("done", "return", "cost", "left"):
        table.add_column(title, justify="right", no_wrap=True)
    groups: dict[tuple[str, str], list[RunStatus]] = {}
    for status in statuses:
        groups.setdefault((labels[status.job.name], status.job.config.env), []).append(status)
    for (label, task), group in groups.items():
        counts = Counter(status.state for status in group)
        states = ", ".join(f"[{STATE_STYLES[state]}]{counts[state]} {state}[/]" for state in STATES if counts[state])
        total = sum(status.job.config.iterations for status in group)
        begun = [status for status in group if not math.isnan(status.returns)]
        left = sum(status.remaining * expected_seconds(status, statuses) for status in group if status.remaining)
        table.add_row(
            escape(label),
            escape(task),
            states,
            f"{100 * sum(status.done for status in group) // total} %",
            _number(_mean([status.returns for status in begun]), ".2f"),
            _number(_mean([status.cost for status in begun]), ".2f"),
            _duration(left) if left else "",
        )
    return table


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def status_line(statuses: Sequence[RunStatus], processes: int) -> str:
    """`3 finished, 2 running, 19 waiting; 1:20:00 left`."""
    counts = Counter(status.state for status in statuses)
    text = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    left = time_left(statuses, processes)
    if not any(status.remaining for status in statuses):
        return text
    return f"{text}; {_duration(left)} left" if not math.isnan(left) else f"{text}; time left not known yet"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _duration(seconds: float) -> str:
    return "-" if math.isnan(seconds) else str(datetime.timedelta(seconds=math.ceil(seconds)))


class LiveTable:
    """Shows a running study: a live table on a terminal, plain lines when the output is piped.

    Only the runs that are running are read again.
    """

    def __init__(self, plan: StudyPlan, console: Console, processes: int) -> None:
        self.plan, self.console, self.processes = plan, console, processes
        self.statuses: dict[str, RunStatus] = {job.name: read_status(plan, job) for job in plan.jobs}
        self.running: set[str] = set()
        self._last_refresh = -float("inf")
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> LiveTable:
        study = self.plan.study
        self.console.print(
            f"{study.figure}: {study.summary} {self.plan.path}: {self._summary()}", soft_wrap=True, markup=False
        )
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def job_started(self, job: Job) -> None:
        self.running.add(job.name)
        self._print(f"{job.name}: {'resumed' if self.statuses[job.name].done else 'started'}")
        self._read(job)

    def job_ended(self, job: Job, message: str) -> None:
        self.running.discard(job.name)
        self._read(job)
        status = self.statuses[job.name]
        numbers = f", return {status.returns:.2f}, cost {status.cost:.2f}" if status.state == "finished" else ""
        self._print(f"{job.name}: {message}{numbers} ({self._summary()})")

    def refresh(self) -> None:
        """Read the running runs and show them, at most as often as REFRESH_SECONDS says."""
        now = time.monotonic()
        if now - self._last_refresh < REFRESH_SECONDS["table" if self._live else "lines"]:
            return
        self._last_refresh = now
        for name in self.running:
            self._read(self.statuses[name].job)
        if self._live:
            self._live.update(self._table(), refresh=True)
        else:
            self._print(self._summary())

    def _read(self, job: Job) -> None:
        status = read_status(self.plan, job)
        self.statuses[job.name] = status._replace(state="running") if job.name in self.running else status

    def _summary(self) -> str:
        return status_line(list(self.statuses.values()), self.processes)

    def _print(self, text: str) -> None:
        if not self._live:
            self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def _table(self) -> RenderableType:
        statuses = list(self.statuses.values())
        rows = max(3, self.console.height - 4)
        shown = sorted(statuses, key=lambda status: PRIORITY.index(status.state))[:rows]
        hidden = len(statuses) - len(shown)
        note = f" ({hidden} more runs are not shown)" if hidden else ""
        return Group(status_table(shown, statuses), Text(self._summary() + note))
