"""A study on any number of machines, through Ray. They need Flashbulb and no file system in common.

Each job is a Ray task on one CPU. It trains in a directory of its machine, as a process just like those of a study on
one machine, and streams what is new there to the driver. When its worker or its machine dies, the job is started again
with what had reached the driver, and a run that is resumed ends bit for bit as if it had never stopped.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb import __version__
from flashbulb.config import to_dict
from flashbulb.errors import UsageError
from flashbulb.studies.run_sync import Parcel, Sender, unpack
from flashbulb.studies.plan import Job, Plan
from flashbulb.studies.run_process import Ending, ending, start
from flashbulb.validation import rebuild

LOOK_EVERY = 0.2  # seconds between a task's looks at its run
SEND_EVERY = 5.0  # seconds between its parcels, but for new checkpoints, which go at once


class News(NamedTuple):
    """What a task tells the driver; the last one says how it ended."""

    parcel: Parcel
    log: bytes = b""
    ending: Ending | None = None


def train_there(plain: dict[str, Any], parcel: Parcel, version: str) -> Iterator[News]:
    """On the worker: begin the run or go on with it, and report."""
    nothing = Parcel({}, ())
    if version != __version__:
        reason = f"the worker has Flashbulb {__version__} and the driver {version}; install the same on all machines"
        yield News(nothing, ending=Ending("failed", reason))
        return
    os.environ.pop("OMP_NUM_THREADS", None)  # Ray's; a run decides on its threads itself
    with tempfile.TemporaryDirectory(prefix="flashbulb-", ignore_cleanup_errors=True) as place:
        config = dataclasses.replace(rebuild(plain), runs_dir=Path(place))
        assert config.name is not None
        run, log = Path(place) / config.name, Path(place) / "log"
        if parcel.files:
            unpack(parcel, run)
        process = start(config, run, log)
        sender, told, sent = Sender(run), 0, 0.0
        try:
            while process.poll() is None:
                due = time.monotonic() - sent > SEND_EVERY
                if run.is_dir() and (due or sender.has_new_checkpoint()):
                    said = log.read_bytes()
                    yield News(sender.pack(), said[told:])
                    told, sent = len(said), time.monotonic()
                time.sleep(LOOK_EVERY)
            rest = sender.pack() if run.is_dir() else nothing
            kind, reason = ending(process.returncode, log)
            yield News(rest, log.read_bytes()[told:], Ending(kind, reason.replace(f"{place}/", "")))
        finally:
            process.kill()
            process.wait()


class RayCluster:
    """Tasks, as many at a time as the cluster has CPUs; machines may join and leave."""

    def __init__(self, plan: Plan, address: str | None = None, processes: int | None = None) -> None:
        self.plan, self.ray = plan, load_ray()
        self.limit = processes
        self.tasks: dict[Any, Job] = {}
        self._connect(address)
        # A task that dies is for us to start again: from its last checkpoint and not from the beginning.
        self.submit = self.ray.remote(num_cpus=1, max_retries=0, max_calls=1)(train_there)

    def _connect(self, address: str | None) -> None:
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        if address is not None:
            refuse_silent(address)
        try:
            if address is None:
                self.ray.init(num_cpus=self.limit, include_dashboard=False, **quiet)
            else:
                self.ray.init(address=address, **quiet)
        except Exception as error:  # Ray has many kinds, bare ones too
            where, said = address or "this machine", " ".join(str(error).split())[:300].rstrip(".")
            hint = "if the cluster has a token, set RAY_AUTH_MODE=token"
            raise UsageError(f"ray_address: no Ray can be had at {where} ({said}); {hint}.") from None

    @property
    def count(self) -> int:
        there = int(self.ray.cluster_resources().get("CPU", 0))
        return max(1, min(there, self.limit or there))

    def free(self) -> bool:
        return len(self.tasks) < self.count

    def start(self, job: Job) -> None:
        run = self.plan.run(job)
        there = Sender(run).pack() if run.is_dir() else Parcel({}, ())
        self.plan.log(job).touch()  # it is there, even if nothing is ever heard of the task
        self.plan.mark(job).touch()
        stream = self.submit.options(num_returns="streaming").remote(to_dict(job.config), there, __version__)
        self.tasks[stream] = job

    def ended(self) -> list[tuple[Job, Ending]]:
        """Write down what has arrived; whoever is heard of for the last time has ended."""
        if not self.tasks:
            return []
        over: list[tuple[Job, Ending]] = []
        ready, _ = self.ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=0, fetch_local=False)
        for stream in ready:
            job = self.tasks[stream]
            final = self._hear(stream, job)
            if final is not None:
                del self.tasks[stream]
                self.plan.mark(job).unlink(missing_ok=True)
                over.append((job, final))
        return over

    def _hear(self, stream: Any, job: Job) -> Ending | None:
        try:
            news: News = self.ray.get(next(stream))
        except StopIteration:
            return Ending("killed", "its task ended without a word")
        except self.ray.exceptions.TaskCancelledError:
            return Ending("stopped", "was stopped")
        except self.ray.exceptions.RayTaskError as error:  # an exception in our code over there
            return Ending("failed", str(error).strip().splitlines()[-1])
        except self.ray.exceptions.RayError as error:
            return Ending("killed", f"its worker died ({type(error).__name__})")
        unpack(news.parcel, self.plan.run(job))
        with self.plan.log(job).open("ab") as log:
            log.write(news.log)
        return news.ending

    def stop(self) -> None:
        """What has reached us is what they go on from."""
        for stream in self.tasks:
            self.ray.cancel(stream)

    def close(self) -> None:
        for job in self.tasks.values():
            self.plan.mark(job).unlink(missing_ok=True)
        self.ray.shutdown()


def refuse_silent(address: str) -> None:
    """Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise UsageError(f"ray_address: {address!r} is not allowed; it must be auto or HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"ray_address: nobody answers at {address} ({error}); is `ray start --head` running?"
        ) from None


def load_ray() -> Any:
    """The package, or one sentence; it reports to nobody how it is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise UsageError("on: Ray is missing; install it with pip install flashbulb[ray].") from None
    return ray
