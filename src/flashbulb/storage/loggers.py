"""Dashboards beside the CSV files: TensorBoard and, with `--wandb`, Weights & Biases.

Both get the names and numbers of metrics.csv, with environment steps on the x axis.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.config import Config, to_dict
from flashbulb.errors import RunError, UsageError
from flashbulb.storage.csv_log import CsvRow


class TensorBoardLogger:
    """One event per row, handed to the operating system when `write` returns.

    tensorboardX's SummaryWriter writes in a thread of its own, where a full disk ends the thread and then blocks the
    run for good; its event writer underneath lets the run see the error.
    """

    def __init__(self, directory: Path, done: int, steps: int) -> None:
        """`done` iterations and `steps` were recorded before; later events in other files are to be hidden."""
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._writer: Any = EventsWriter(str(directory / "events"), f".{done:06d}")
        if done:
            started = SessionLog(status=SessionLog.START)
            self._writer.write_event(Event(wall_time=time.time(), step=steps + 1, session_log=started))

    def write(self, row: CsvRow, steps: int) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in _finite(row).items()]
        self._writer.write_event(Event(wall_time=time.time(), step=steps, summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WandbLogger:
    """The W&B run has the name of the run's directory, so that a resumed run continues the same one.

    Whether it contacts a server is W&B's own setting: with WANDB_MODE=offline it writes below the run's directory only.
    """

    def __init__(self, directory: Path, config: Config) -> None:
        wandb = load_wandb()
        try:
            self._run: Any = wandb.init(
                project="flashbulb",
                id=directory.name,
                name=directory.name,
                group=f"{config.algorithm} on {config.env}",
                dir=str(directory),
                config=to_dict(config),
                resume="allow",
            )
        except Exception as error:  # W&B raises many kinds, for example without a login or a network
            reason = " ".join(str(error).split())
            raise RunError(f"W&B cannot be started ({reason}); log in, or set WANDB_MODE=offline.") from error

    def write(self, row: CsvRow, steps: int) -> None:
        self._run.log(_finite(row), step=steps)

    def close(self) -> None:
        self._run.finish()


def _finite(row: CsvRow) -> CsvRow:
    """What a dashboard can show, without what is on its x axis."""
    return {name: value for name, value in row.items() if name not in ("iteration", "steps") and np.isfinite(value)}


def load_wandb() -> Any:
    """The package wandb, or a UsageError; called before a run makes its directory."""
    try:
        import wandb
    except ImportError:
        raise UsageError("wandb: the package is missing; install it with pip install flashbulb[wandb].") from None
    return wandb
