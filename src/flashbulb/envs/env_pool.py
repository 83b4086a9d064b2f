"""Several copies of a user environment, run one after the other, in threads, or in worker processes.

All three give the same numbers. A worker process runs this module: `python -m flashbulb.envs.env_pool FILE_DESCRIPTOR
SOURCE FIRST END KWARGS PARENT` serves requests for the environments FIRST to END - 1 until its connection closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from flashbulb.envs.gym_single import EnvInfo, EnvStep, PoolStep, SingleEnv, env_info, importable_name
from flashbulb.envs.registry import EnvSource, Vectorise
from flashbulb.errors import RunError, UsageError

EXIT_SECONDS = 5.0  # that a worker process has to exit once its connection is closed
WATCH_SECONDS = 1.0  # between looks at whether the parent is alive
PR_SET_PDEATHSIG = 1  # of Linux's prctl.h


class EnvPool(Protocol):
    """All environments of a batch, independent of where they run."""

    info: EnvInfo

    def replay(self, indices: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray: ...
    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> PoolStep: ...
    def close(self) -> None: ...


def start_pool(
    vectorise: Vectorise,
    source: EnvSource,
    num_envs: int,
    workers: int,
    kwargs: Mapping[str, Any] | None = None,
    step_timeout: float | None = None,
) -> EnvPool:
    """Build `num_envs` copies of the environment `source` in at most `workers` processes or threads.

    What another process cannot import, such as a class of a notebook, runs in this process, one after the other. A
    worker process that does not answer a step within `step_timeout` seconds is killed.
    """
    name = importable_name(source)
    if vectorise == "processes" and name is not None:
        return ProcessEnvPool(name, num_envs, min(workers, num_envs), kwargs, step_timeout)
    if step_timeout is not None:
        raise UsageError("step_timeout: it is not allowed here; it needs environments in processes of their own.")
    threads = min(workers, num_envs) if vectorise == "threads" else 1
    return LocalEnvPool(source, range(num_envs), threads, kwargs)


def _names(steps: Sequence[EnvStep] | Sequence[PoolStep]) -> list[str]:
    """The named costs that occur in any of these steps."""
    return list(dict.fromkeys(name for step in steps for name in step.costs))


class LocalEnvPool:
    """Environments in this process, stepped by `threads` threads."""

    def __init__(
        self, source: EnvSource, indices: range, threads: int = 1, kwargs: Mapping[str, Any] | None = None
    ) -> None:
        self._envs = [SingleEnv(source, i, kwargs) for i in indices]
        self._threads = ThreadPoolExecutor(threads) if threads > 1 else None
        self.info = env_info(self._envs[0].env)

    def _map(self, function: Callable[..., Any], *columns: Any) -> list[Any]:
        return list((self._threads.map if self._threads else map)(function, *columns))

    def replay(self, indices: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray:
        """Start the episodes of these seeds, repeat their actions, and return the observations at the end."""
        chosen = [self._envs[i] for i in indices]
        return self._stack(self._map(SingleEnv.replay, chosen, seeds.tolist(), actions))

    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> PoolStep:
        """Step every environment; those whose episode ends are reset with their entry of `next_seeds`."""
        results = self._map(SingleEnv.step, self._envs, actions, next_seeds.tolist())
        obs, final, steps = zip(*results, strict=True)
        return PoolStep(
            self._stack(obs),
            self._stack(final),
            np.array([step.reward for step in steps], np.float64),
            np.array([step.cost for step in steps], np.float64),
            np.array([step.terminated for step in steps], bool),
            np.array([step.truncated for step in steps], bool),
            {name: np.array([step.costs.get(name, np.nan) for step in steps]) for name in _names(steps)},
        )

    def _stack(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        wanted = self.info.observations.shape
        for row in rows:
            if row.shape != wanted:
                raise UsageError(f"env: an observation has shape {row.shape}; its space says {wanted}.")
        return np.stack(rows).astype(self.info.observations.dtype)

    def close(self) -> None:
        if self._threads:
            self._threads.shutdown()
        for env in self._envs:
            env.close()


class ProcessEnvPool:
    """Environments in worker processes, a contiguous range of them in each.

    A worker is a new program and not a fork: it shares no threads with JAX and does not run the user's script again. It
    exits when its connection to this process closes, and is killed with this process if it hangs in its environment.
    """

    def __init__(
        self,
        source: str,
        num_envs: int,
        workers: int,
        kwargs: Mapping[str, Any] | None = None,
        step_timeout: float | None = None,
    ) -> None:
        self._workers: list[_Worker] = []
        self._step_timeout = step_timeout
        bounds = np.linspace(0, num_envs, workers + 1).astype(int).tolist()
        try:
            for first, end in itertools.pairwise(bounds):
                self._workers.append(_Worker(source, range(first, end), json.dumps(kwargs or {})))
            self.info: EnvInfo = [worker.receive() for worker in self._workers][-1]
        except BaseException:
            self.close()
            raise

    def replay(self, indices: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray:
        """As `LocalEnvPool.replay`."""
        requests = []
        for worker in self._workers:
            rows = [k for k, i in enumerate(indices) if i in worker.indices]
            if rows:
                local = np.array([indices[k] - worker.indices.start for k in rows])
                worker.send("replay", local, seeds[rows], [actions[k] for k in rows])
                requests.append((worker, rows))
        obs: np.ndarray | None = None
        for worker, rows in requests:
            part = worker.receive()
            obs = np.empty((len(indices), *part.shape[1:]), part.dtype) if obs is None else obs
            obs[rows] = part
        assert obs is not None
        return obs

    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> PoolStep:
        """As `LocalEnvPool.step`."""
        for worker in self._workers:
            rows = slice(worker.indices.start, worker.indices.stop)
            worker.send("step", actions[rows], next_seeds[rows])
        answers = [worker.receive(self._step_timeout) for worker in self._workers]
        costs = {
            name: np.concatenate([part.costs.get(name, np.full(len(part.cost), np.nan)) for part in answers])
            for name in _names(answers)
        }
        arrays = [np.concatenate(parts) for parts in list(zip(*answers, strict=True))[:-1]]
        return PoolStep._make([*arrays, costs])

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


class _Worker:
    """A worker process and the connection to it."""

    def __init__(self, source: str, indices: range, kwargs: str) -> None:
        self.source, self.indices = source, indices
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: the interpreter does not put the current directory on the import path
            command = [sys.executable, "-P", "-m", "flashbulb.envs.env_pool", str(theirs.fileno()), source]
            command += [str(indices.start), str(indices.stop), kwargs, str(os.getpid())]
            command += ["main"] if threading.current_thread() is threading.main_thread() else []
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(worker_paths(source)), "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        self._connection: Connection = Connection(ours.detach())

    def send(self, *request: Any) -> None:
        try:
            self._connection.send(request)
        except OSError:
            raise self._exit_error() from None

    def receive(self, timeout: float | None = None) -> Any:
        """The result of the last request; an error in the worker is raised here."""
        try:
            if timeout is not None and not self._connection.poll(timeout):
                self._process.kill()
                raise RunError(
                    f"environments {self.indices.start} to {self.indices.stop - 1} of {self.source} took longer than "
                    f"{timeout:g} s for a step (step_timeout); metrics and the last checkpoint stay."
                )
            kind, content = self._connection.recv()
        except (EOFError, OSError):
            raise self._exit_error() from None
        if kind == "error":
            raise content
        return content

    def _exit_error(self) -> RunError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        code = self._process.returncode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        first, last = self.indices.start, self.indices.stop - 1
        return RunError(
            f"worker process {self._process.pid}, which ran environments {first} to {last} of {self.source}, died "
            f"({how}); metrics and the last checkpoint stay."
        )

    def close(self) -> None:
        self._connection.close()
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def worker_paths(source: str) -> list[str]:
    """The import path of a worker: that of this process, with the current directory only if the user put it there, by
    naming `module:function` or in PYTHONPATH; `python -m` puts it there unasked."""
    here = os.getcwd()
    paths = [path or here for path in sys.path]
    if ":" in source or here in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return paths
    return [path for path in paths if path != here]


def end_with_parent(parent: int, by_main_thread: bool) -> None:
    """Kill this process when its parent ends, even if it hangs in an environment.

    Linux does it by itself, but counts the thread that started us for the parent; elsewhere a thread looks every
    second, which cannot run while compiled code that hangs keeps the interpreter locked.
    """
    if sys.platform == "linux" and by_main_thread:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def serve(descriptor: int, source: str, first: int, end: int, kwargs: str) -> None:
    """The worker process: run requests until the connection closes."""
    # Ctrl-C and SIGTERM reach the whole process group; the parent finishes its step and needs its workers for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = Connection(descriptor)
    try:
        pool = LocalEnvPool(source, range(first, end), kwargs=json.loads(kwargs))
    except (UsageError, RunError) as error:
        connection.send(("error", _without_cause(error)))
        return
    connection.send(("done", pool.info))
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            method, *arguments = connection.recv()
            connection.send(_call(pool, method, arguments))
    pool.close()


def _call(pool: LocalEnvPool, method: str, arguments: list[Any]) -> tuple[str, Any]:
    try:
        return "done", getattr(pool, method)(*arguments)
    except (UsageError, RunError) as error:
        return "error", _without_cause(error)


def _without_cause(error: Exception) -> Exception:
    """The cause may be of a class that only this process can import."""
    plain = type(error)(*error.args)
    for note in getattr(error, "__notes__", ()):
        plain.add_note(note)
    return plain


if __name__ == "__main__":
    end_with_parent(int(sys.argv[6]), "main" in sys.argv[7:])
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
