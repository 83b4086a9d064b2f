"""A study on this machine: one process per core, one thread each."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import NamedTuple

from flashbulb.studies.plan import Job, Plan
from flashbulb.studies.run_process import Ending, ending, start


class Worker(NamedTuple):
    job: Job
    process: subprocess.Popen[bytes]


class Cores:
    """ProcessEnvPool, each kept on a core of its own where the operating system can do that."""

    def __init__(self, plan: Plan, count: int | None = None) -> None:
        self.plan = plan
        self.cores = usable_cores()
        self.count: int = count or len(self.cores)
        self.slots: dict[int, Worker] = {}

    def free(self) -> bool:
        return len(self.slots) < self.count

    def start(self, job: Job) -> None:
        slot = min(set(range(self.count)) - set(self.slots))
        process = start(job.config, self.plan.run(job), self.plan.log(job))
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):  # it has ended already
                os.sched_setaffinity(process.pid, {self.cores[slot % len(self.cores)]})
        self.slots[slot] = Worker(job, process)

    def ended(self) -> list[tuple[Job, Ending]]:
        over = {slot: worker for slot, worker in self.slots.items() if worker.process.poll() is not None}
        for slot, worker in over.items():
            _let_go(worker.process)
            del self.slots[slot]
        return [(job, ending(process.returncode, self.plan.log(job))) for job, process in over.values()]

    def stop(self) -> None:
        for _, process in self.slots.values():
            process.terminate()

    def close(self) -> None:
        """At once, if any still runs."""
        for _, process in self.slots.values():
            process.kill()
            process.wait()
            _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def usable_cores() -> list[int]:
    """Those that we are allowed to use, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
