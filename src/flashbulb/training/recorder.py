"""Writes what the training loop reports: metrics, episodes, timing, dashboards, checkpoints, and the final result."""

from __future__ import annotations

import contextlib
import errno
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from flashbulb.batch import Batch
from flashbulb.config import Config
from flashbulb.cost_limits import limit_columns, limits_of_rows
from flashbulb.errors import RunError
from flashbulb.plots.learning_curves import draw_run
from flashbulb.shown_text import printable
from flashbulb.storage.checkpoint import Checkpoints, best_feasible
from flashbulb.storage.csv_log import CsvLog, CsvRow, read_csv
from flashbulb.storage.loggers import TensorBoardLogger, WandbLogger
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.storage.run_list import last_tenth
from flashbulb.storage.safe_files import write_whole
from flashbulb.training.metrics import episode_rows
from flashbulb.training.train_state import TrainState


class Result(NamedTuple):
    """What `train` returns: the run's directory, its metrics by column, and the metrics of its last iteration."""

    directory: Path
    metrics: dict[str, np.ndarray]
    summary: CsvRow

    def __repr__(self) -> str:
        """A few lines, and not all numbers."""
        returns, several = last_tenth(self.metrics["return"]), "violation_rate_"
        names = [column.removeprefix(several) for column in self.metrics if column.startswith(several)]
        columns = {f"cost {name}": f"cost_{name}" for name in names} or {"cost": "cost"}
        costs = (f"{shown} {last_tenth(self.metrics[column]).mean():.2f}" for shown, column in columns.items())
        return (
            f"{self.directory}: {self.metrics['steps'][-1]:,.0f} steps in {len(self.metrics['steps'])} iterations\n"
            f"  mean of the last {len(returns)}: return {returns.mean():.2f}, {', '.join(costs)}\n"
            f"  whole of training: {100 * self.summary['violation_rate']:.0f} % of iterations above "
            f"{'a' if names else 'the'} limit"
        )


class Recorder:
    """Continues from a state. What the files have beyond it, the loop will report again: it is moved aside when the
    first iteration is done, and not before, so that a run that cannot go on loses nothing."""

    def __init__(self, directory: RunDirectory, config: Config, state: TrainState) -> None:
        self.directory, self.config = directory, config
        self.checkpoints = Checkpoints(directory.checkpoints)
        self.metrics, self.episodes = CsvLog(directory.metrics), CsvLog(directory.episodes)
        self.timing = CsvLog(directory.timing)
        self._continues: int | None = state.iteration  # None once it does
        with writing(directory):
            tensorboard = TensorBoardLogger(directory.path, state.iteration, int(state.totals.steps))
        self.dashboards: list[TensorBoardLogger | WandbLogger] = [tensorboard]
        if config.wandb:
            self.dashboards.append(WandbLogger(directory.path, config))

    def record(self, row: CsvRow, batch: Batch, seconds: float) -> None:
        rate = batch.size / seconds
        self.directory.require_lock()
        with writing(self.directory):
            if self._continues is not None:
                self._move_aside(self._continues)
            self.metrics.write([row])
            self.episodes.write(episode_rows(batch, int(row["steps"]) - batch.size, self.config.cost_limit))
            self.timing.write([{"iteration": row["iteration"], "seconds": seconds, "steps_per_second": rate}])
            for dashboard in self.dashboards:
                dashboard.write(row | {"steps_per_second": rate}, int(row["steps"]))

    def _move_aside(self, done: int) -> None:
        for log in (self.metrics, self.episodes, self.timing):
            log.forget_from(done)
        for later in self.checkpoints.iterations():
            if later > done:
                self.checkpoints.set_aside(later)
        for folder in (self.directory.path, self.directory.checkpoints, self.directory.path / "memories"):
            for left in folder.glob(".*.tmp"):  # by a process that was killed while it wrote
                left.unlink(missing_ok=True)
        self._continues = None

    def checkpoint(self, state: TrainState) -> None:
        """Flush the rows, then save the state, then delete old checkpoints: a crash in between loses nothing."""
        self.directory.require_lock()
        with writing(self.directory):
            logs = (self.metrics, self.episodes, self.timing)
            for log in logs:
                log.sync()
            self.checkpoints.save(state.iteration, state, rows={log.path.name: log.seal() for log in logs})
            metrics = read_csv(self.metrics.path)
            limit = limits_of_rows(metrics, self.config.cost_limit)
            best = best_feasible(metrics, limit, self.checkpoints.iterations())
            self.checkpoints.prune(self.config.keep_checkpoints, best)

    def close(self) -> None:
        for dashboard in self.dashboards:
            with contextlib.suppress(OSError):  # the error of the disk has been reported before
                dashboard.close()

    def finish(self, console: Console) -> Result:
        with writing(self.directory):
            result = read_result(self.directory)
            draw(self.directory, self.config, result)
        text = "\n".join(map(printable, summary_text(result.metrics, self.config, self.directory).split("\n")))
        console.print(text, soft_wrap=True, highlight=False, markup=False)
        return result


@contextlib.contextmanager
def writing(directory: RunDirectory) -> Iterator[None]:
    """Turn an OSError of the run's files into a RunError that says what is wrong."""
    try:
        yield
    except OSError as error:
        if not directory.path.is_dir():
            reason = "its directory is gone"
        elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = f"there is no space left to write to ({error.strerror}); make some and resume it"
        else:
            reason = f"{error.filename or 'a file of it'} cannot be written ({error.strerror})"
        raise RunError(f"{reason}.") from error


def read_result(directory: RunDirectory) -> Result:
    metrics = read_csv(directory.metrics)
    return Result(directory.path, metrics, {name: float(column[-1]) for name, column in metrics.items()})


def draw(directory: RunDirectory, config: Config, result: Result) -> None:
    title = f"{config.algorithm} on {config.env}, seed {config.seed}"
    picture = io.BytesIO()
    draw_run(result.metrics, config.cost_limit, title, picture)
    write_whole(directory.figure, picture.getvalue())


def summary_text(metrics: dict[str, np.ndarray], config: Config, directory: RunDirectory) -> str:
    """The result as text, over the last tenth of the run and over all of it."""
    returns, limit = last_tenth(metrics["return"]), config.cost_limit
    above = metrics["cost"] > limits_of_rows(metrics, limit)
    late = 100 * above[len(above) // 2 :].mean()
    asked = "" if config.violations is None else f", asked for {100 * config.violations:.0f} % in the long run"
    asked += " of each" if asked and config.cost_names else ""
    a_limit = "a limit" if config.cost_names else "the limit"
    return (
        f"\nAfter {metrics['steps'][-1]:,.0f} steps (mean of the last {len(returns)} iterations):\n"
        f"  episode return   {returns.mean():.2f}\n"
        f"{''.join(_cost_line(metrics, column, own) for column, own in limit_columns(limit).items())}"
        f"Over the whole of training:\n"
        f"  violation rate   {100 * metrics['violation_rate'][-1]:.0f} % of iterations above {a_limit}, "
        f"{late:.0f} % in the second half{asked}{_each_rate(metrics, config)}\n"
        f"  mean excess      {metrics['mean_excess'][-1]:.2f} above the limit per episode\n"
        f"  cost rate        {metrics['cost_rate'][-1]:.4f} per step\n"
        f"Curves: {directory.figure}\nMetrics: {directory.metrics}"
    )


def _cost_line(metrics: dict[str, np.ndarray], column: str, limit: float) -> str:
    cost = last_tenth(metrics[column]).mean()
    kept = "under" if cost <= limit else "OVER"
    which = column.removeprefix("cost").replace("_", " ")
    return f"  {f'episode cost{which}':<16} {cost:.2f}  ({kept} the limit of {limit:g})\n"


def _each_rate(metrics: dict[str, np.ndarray], config: Config) -> str:
    """The violation rates of several costs."""
    rates = (f"{name} {100 * metrics[f'violation_rate_{name}'][-1]:.0f} %" for name in config.cost_names)
    return f"\n                   ({', '.join(rates)})" if config.cost_names else ""
