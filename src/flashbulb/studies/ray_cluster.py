"""A worker pool on a Ray cluster. The machines need the same version of Flashbulb and no common file system.

Each job is a Ray task on one CPU. It trains in a temporary directory of its machine, as the same kind of process as in
a `LocalPool`, and streams changed files to the driver. When a worker or its machine dies, the job is started again from
the files that had reached the driver; a resumed run gives bit-identical results.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb import __version__
from flashbulb.config import to_dict
from flashbulb.errors import UsageError
from flashbulb.studies.plan import Job, StudyPlan
from flashbulb.studies.run_process import RunExit, run_exit, start_run
from flashbulb.studies.run_sync import NO_CHANGES, FileChanges, RunWatcher, apply_changes
from flashbulb.validation import rebuild

CHECK_SECONDS = 0.2  # between checks of the run by its task
SEND_SECONDS = 5.0  # between messages; new checkpoints are sent at once


class TaskMessage(NamedTuple):
    """From a task to the driver: changed files and new log output; the last message has the run's exit."""

    changes: FileChanges
    log: bytes = b""
    exit: RunExit | None = None


def run_remote(settings: dict[str, Any], changes: FileChanges, version: str) -> Iterator[TaskMessage]:
    """On the worker: train or resume the run whose files are in `changes`, and report its progress."""
    if version != __version__:
        reason = f"the worker has Flashbulb {__version__} and the driver {version}; install the same on all machines"
        yield TaskMessage(NO_CHANGES, exit=RunExit("failed", reason))
        return
    os.environ.pop("OMP_NUM_THREADS", None)  # set by Ray; the run sets its own threads
    with tempfile.TemporaryDirectory(prefix="flashbulb-", ignore_cleanup_errors=True) as place:
        config = dataclasses.replace(rebuild(settings), runs_dir=Path(place))
        assert config.name is not None
        run, log = Path(place) / config.name, Path(place) / "log"
        if changes.files:
            apply_changes(changes, run)
        process = start_run(config, run, log)
        watcher, log_sent, last_sent = RunWatcher(run), 0, 0.0
        try:
            while process.poll() is None:
                due = time.monotonic() - last_sent > SEND_SECONDS
                if run.is_dir() and (due or watcher.has_new_checkpoint()):
                    output = log.read_bytes()
                    yield TaskMessage(watcher.changes(), output[log_sent:])
                    log_sent, last_sent = len(output), time.monotonic()
                time.sleep(CHECK_SECONDS)
            rest = watcher.changes() if run.is_dir() else NO_CHANGES
            status, reason = run_exit(process.returncode, log)
            yield TaskMessage(rest, log.read_bytes()[log_sent:], RunExit(status, reason.replace(f"{place}/", "")))
        finally:
            process.kill()
            process.wait()


class RayPool:
    """As many tasks at a time as the cluster has CPUs; machines may join and leave."""

    def __init__(self, plan: StudyPlan, address: str | None = None, processes: int | None = None) -> None:
        self.plan, self.ray = plan, load_ray(local=address is None)
        self.limit = processes
        self.tasks: dict[Any, Job] = {}
        self._connect(address)
        # Ray would retry a task from the beginning; the runner resumes it from its last checkpoint instead.
        self.submit = self.ray.remote(num_cpus=1, max_retries=0, max_calls=1)(run_remote)

    def _connect(self, address: str | None) -> None:
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        if address is not None:
            check_address(address)
        try:
            if address is None:
                self.ray.init(num_cpus=self.limit, include_dashboard=False, **quiet)
            else:
                self.ray.init(address=address, **quiet)
        except Exception as error:  # Ray raises many types, plain Exception among them
            where, detail = address or "this machine", " ".join(str(error).split())[:300].rstrip(".")
            hint = "its token must be in ~/.ray/auth_token; if it has none, set RAY_AUTH_MODE=disabled"
            raise UsageError(f"ray_address: cannot connect to Ray at {where} ({detail}); {hint}.") from None

    @property
    def size(self) -> int:
        cpus = int(self.ray.cluster_resources().get("CPU", 0))
        return max(1, min(cpus, self.limit or cpus))

    def has_free_slot(self) -> bool:
        return len(self.tasks) < self.size

    def start(self, job: Job) -> None:
        run = self.plan.run_path(job)
        files = RunWatcher(run).changes() if run.is_dir() else NO_CHANGES
        self.plan.log_path(job).touch()  # so that it exists even if the task sends nothing
        self.plan.remote_marker(job).touch()
        stream = self.submit.options(num_returns="streaming").remote(to_dict(job.config), files, __version__)
        self.tasks[stream] = job

    def poll(self) -> list[tuple[Job, RunExit]]:
        """Write the files that have arrived, and return the jobs that have ended."""
        if not self.tasks:
            return []
        ended: list[tuple[Job, RunExit]] = []
        ready, _ = self.ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=0, fetch_local=False)
        for stream in ready:
            job = self.tasks[stream]
            exit_ = self._receive(stream, job)
            if exit_ is not None:
                del self.tasks[stream]
                self.plan.remote_marker(job).unlink(missing_ok=True)
                ended.append((job, exit_))
        return ended

    def _receive(self, stream: Any, job: Job) -> RunExit | None:
        try:
            message: TaskMessage = self.ray.get(next(stream))
        except StopIteration:
            return RunExit("killed", "its task ended without a message")
        except self.ray.exceptions.TaskCancelledError:
            return RunExit("stopped", "was stopped")
        except self.ray.exceptions.RayTaskError as error:  # an exception in `run_remote`
            return RunExit("failed", str(error).strip().splitlines()[-1])
        except self.ray.exceptions.RayError as error:
            return RunExit("killed", f"its worker died ({type(error).__name__})")
        apply_changes(message.changes, self.plan.run_path(job))
        with self.plan.log_path(job).open("ab") as log:
            log.write(message.log)
        return message.exit

    def stop(self) -> None:
        """Cancel all tasks; they can be resumed from the files that have reached the driver."""
        for stream in self.tasks:
            self.ray.cancel(stream)

    def close(self) -> None:
        for job in self.tasks.values():
            self.plan.remote_marker(job).unlink(missing_ok=True)
        self.ray.shutdown()


def check_address(address: str) -> None:
    """Raise `UsageError` if the address is malformed or does not answer; Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise UsageError(f"ray_address: {address!r} is not allowed; it must be auto or HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"ray_address: no answer from {address} ({error}); is `ray start --head` running?") from None


def load_ray(local: bool = False) -> Any:
    """Import Ray with usage reports turned off and tokens turned on, or raise `UsageError`.

    A `local` Ray, of this machine alone, gets a token of its own and the loopback interface.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if local:
        # What Ray does on macOS: addresses are 127.0.0.1, and its servers listen there only. Read at its import.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        import ray
    except ImportError:
        raise UsageError("on: Ray is missing; install it with pip install flashbulb[ray].") from None
    return ray
