"""Runs a study's jobs on whatever can run them: in order, each from where it was, whatever becomes of the others."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Protocol

from rich.console import Console

from flashbulb.errors import Interrupted
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training.graceful_stop import Wish, graceful_stop
from flashbulb.studies.live_table import Board
from flashbulb.studies.plan import Job, Plan
from flashbulb.studies.run_process import Ending
from flashbulb.studies.status import Line

TRIES = 3  # of a job that something kills without its getting any further
PAUSE = 0.1  # seconds between looks


class Workers(Protocol):
    """Those who run jobs: processes of this machine, or tasks on a cluster."""

    @property
    def count(self) -> int:
        """Jobs at a time."""

    def free(self) -> bool: ...

    def start(self, job: Job) -> None: ...

    def ended(self) -> list[tuple[Job, Ending]]: ...

    def stop(self) -> None:
        """Ask all to stop where they can go on later; what they end with is still reported by `ended`."""

    def close(self) -> None: ...


def execute(plan: Plan, workers: Workers, console: Console, command: str) -> list[Line]:
    """Until every job is finished or has failed. A signal stops all; `command` is how to go on."""
    with RunDirectory(plan.path).locked(), Board(plan, console, workers.count) as board:
        waiting = deque(job for job in plan.jobs if board.lines[job.name].state != "finished")
        try:
            with graceful_stop() as wish:
                _work(plan, waiting, workers, board, wish)
        finally:
            workers.close()
    if wish.signal and any(line.state in ("interrupted", "waiting") for line in board.lines.values()):
        finished = sum(line.state == "finished" for line in board.lines.values())
        raise Interrupted(
            f"stopped with {finished} of {len(plan.jobs)} runs finished; go on with: {command}", wish.code
        )
    return list(board.lines.values())


def _work(plan: Plan, waiting: deque[Job], workers: Workers, board: Board, wish: Wish) -> None:
    patience, working, stopping = Patience(plan), set[str](), False
    while working or (waiting and not stopping):
        if wish.signal and not stopping:
            stopping = True
            workers.stop()
        while waiting and not stopping and workers.free() and (job := _startable(plan, waiting)):
            plan.failure(job).unlink(missing_ok=True)
            workers.start(job)
            working.add(job.name)
            board.begun(job)
        for job, (kind, reason) in workers.ended():
            working.discard(job.name)
            if kind in ("killed", "stopped") and not stopping:  # by somebody else
                if patience.lasts(job):
                    waiting.append(job)
                    board.ended(job, f"{reason}; will be resumed")
                    continue
                kind = "failed"
            if kind == "failed":
                plan.failure(job).write_text(reason + "\n")
            board.ended(job, reason or kind)
        board.refresh()
        time.sleep(PAUSE)


class Patience:
    """With jobs that something kills: as long as they get further, and a few times more."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kills: Counter[tuple[str, int]] = Counter()

    def lasts(self, job: Job) -> bool:
        reached = max(Checkpoints(self.plan.run(job) / "checkpoints").iterations(), default=0)
        self.kills[job.name, reached] += 1
        return self.kills[job.name, reached] < TRIES


def _startable(plan: Plan, waiting: deque[Job]) -> Job | None:
    """The first that no process of an earlier study is still finishing with."""
    for job in waiting:
        if not RunDirectory(plan.run(job)).is_locked():
            waiting.remove(job)
            return job
    return None
