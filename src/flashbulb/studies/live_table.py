"""What a person sees while a study goes on: a live table on a terminal, plain lines when piped."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from flashbulb.studies.plan import Job, Plan
from flashbulb.studies.status import Line, look, summary, table

FIRST = ("running", "failed", "interrupted", "waiting", "finished")  # what matters most where not all fits
EVERY = {"table": 1.0, "lines": 30.0}  # seconds


class Board:
    """Knows every run's line; only those that run are read again."""

    def __init__(self, plan: Plan, console: Console, processes: int) -> None:
        self.plan, self.console, self.processes = plan, console, processes
        self.lines: dict[str, Line] = {job.name: look(plan, job) for job in plan.jobs}
        self.running: set[str] = set()
        self._shown = -float("inf")
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Board:
        self.console.print(
            f"{self.plan.study.figure}: {self.plan.study.summary} {self.plan.path}: {self._summary()}", soft_wrap=True
        )
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def begun(self, job: Job) -> None:
        self.running.add(job.name)
        self._say(f"{job.name}: {'begun' if not self.lines[job.name].done else 'resumed'}")
        self._read(job)

    def ended(self, job: Job, sentence: str) -> None:
        self.running.discard(job.name)
        self._read(job)
        line = self.lines[job.name]
        numbers = f", return {line.returns:.2f}, cost {line.cost:.2f}" if line.state == "finished" else ""
        self._say(f"{job.name}: {sentence}{numbers} ({self._summary()})")

    def refresh(self) -> None:
        """As often as is pleasant; to be called more often."""
        now = time.monotonic()
        if now - self._shown < EVERY["table" if self._live else "lines"]:
            return
        self._shown = now
        for name in self.running:
            self._read(self.lines[name].job)
        if self._live:
            self._live.update(self._table(), refresh=True)
        else:
            self._say(self._summary())

    def _read(self, job: Job) -> None:
        line = look(self.plan, job)
        self.lines[job.name] = line._replace(state="running") if job.name in self.running else line

    def _summary(self) -> str:
        return summary(list(self.lines.values()), self.processes)

    def _say(self, sentence: str) -> None:
        if not self._live:
            self.console.print(sentence, soft_wrap=True, highlight=False)

    def _table(self) -> RenderableType:
        lines = list(self.lines.values())
        room = max(3, self.console.height - 4)
        shown = sorted(lines, key=lambda line: FIRST.index(line.state))[:room]
        more = f" ({len(lines) - len(shown)} more runs are not shown)" if len(shown) < len(lines) else ""
        return Group(table(shown, lines), Text(self._summary() + more))
