"""What a person sees while a run goes on: one live line on a terminal, plain lines when piped."""

from __future__ import annotations

import math
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from flashbulb.cost_limits import CostLimit, limit_columns
from flashbulb.storage.csv_log import CsvRow

WIDE = 130  # columns of a terminal from which on there is room for a bar


def headline(row: CsvRow, limit: CostLimit, rate: float) -> str:
    """The numbers that matter, in one line."""
    beta = f"  beta {row['beta']:.2f}" if "beta" in row else ""
    memory = f"{beta}  memory {row['memory_size']:,}" if row["memory_size"] else ""
    mark = "~" if row["episode_estimated"] else ""
    costs = (
        f"{column.removeprefix('cost_')} {mark}{row[column]:.1f}/{own:g}  "
        for column, own in limit_columns(limit).items()
    )
    return (
        f"return {mark}{row['return']:.2f}  {''.join(costs)}"
        f"violated {100 * row['violation_rate']:.0f}%{memory}  {rate:,.0f} steps/s"
    )


class TerminalProgress:
    """A live bar with the latest numbers and the time left."""

    def __init__(self, console: Console, iterations: int, done: int, limit: CostLimit) -> None:
        self.limit = limit
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            *([BarColumn(bar_width=20)] if console.width >= WIDE else []),
            TimeRemainingColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            console=console,
        )
        self._room = console.width - (56 if console.width >= WIDE else 34)  # for the numbers, beside the other columns
        self._task = self._progress.add_task("compiling", total=iterations, completed=done)

    def __enter__(self) -> TerminalProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, row: CsvRow, rate: float) -> None:
        self._progress.update(self._task, advance=1, description=headline(row, self.limit, rate)[: self._room])


class PlainProgress:
    """A line at the start, at the end and every few seconds between: for logs."""

    def __init__(self, console: Console, iterations: int, done: int, limit: CostLimit, every: float = 10.0) -> None:
        self.console, self.iterations, self.limit, self.every = console, iterations, limit, every
        self.first, self.started, self.last = done, time.monotonic(), -math.inf

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return None

    def show(self, row: CsvRow, rate: float) -> None:
        now, done = time.monotonic(), int(row["iteration"]) + 1
        if now - self.last < self.every and done < self.iterations:
            return
        self.last = now
        left = (now - self.started) / (done - self.first) * (self.iterations - done)
        self.console.print(
            f"iteration {done}/{self.iterations}  {headline(row, self.limit, rate)}  {left:,.0f} s left",
            soft_wrap=True,
            highlight=False,
        )


def progress_for(console: Console, iterations: int, done: int, limit: CostLimit) -> TerminalProgress | PlainProgress:
    kind = TerminalProgress if console.is_terminal else PlainProgress
    return kind(console, iterations, done, limit)
