"""TensorBoard beside the CSV: the same names and numbers, environment steps on the x axis."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.storage.csv_log import Row


class TensorBoard:
    """One event per row, on its way to the disk when `write` returns.

    tensorboardX's SummaryWriter would write in a thread of its own, where a full disk ends the thread and then blocks
    the run for good; its event writer underneath lets the run see the error.
    """

    def __init__(self, directory: Path, done: int, steps: int) -> None:
        """`done` iterations and `steps` were recorded before; what other files have beyond them is to be hidden."""
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._writer: Any = EventsWriter(str(directory / "events"), f".{done:06d}")
        if done:
            started = SessionLog(status=SessionLog.START)
            self._writer.write_event(Event(wall_time=time.time(), step=steps + 1, session_log=started))

    def write(self, row: Row, steps: int) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        shown = {name: value for name, value in row.items() if name not in ("iteration", "steps")}
        values = [Summary.Value(tag=name, simple_value=value) for name, value in shown.items() if np.isfinite(value)]
        self._writer.write_event(Event(wall_time=time.time(), step=steps, summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
