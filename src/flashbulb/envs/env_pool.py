"""Many foreign environments at once: one after the other, in threads, or in processes. All give the same numbers."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from flashbulb.envs.gym_single import Facts, Member, Outcome, facts_of
from flashbulb.envs.registry import Vectorise
from flashbulb.errors import RunError, UsageError

WORKER = "flashbulb.envs.env_worker"
PATIENCE = 5.0  # seconds that a worker has to leave when it is told to


class EnvPool(Protocol):
    """All members of a batch, whoever runs them."""

    facts: Facts

    def replay(self, members: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray: ...
    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> Outcome: ...
    def close(self) -> None: ...


def start_pool(vectorise: Vectorise, source: str, num_envs: int, workers: int) -> EnvPool:
    if vectorise == "processes":
        return ProcessEnvPool(source, num_envs, min(workers, num_envs))
    return LocalEnvPool(source, range(num_envs), 1 if vectorise == "serial" else min(workers, num_envs))


class LocalEnvPool:
    """Members in this process, stepped by `threads` threads."""

    def __init__(self, source: str, members: range, threads: int = 1) -> None:
        self._members = [Member(source, i) for i in members]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.facts = facts_of(self._members[0].env)

    def _map(self, function: Callable[..., Any], *columns: Any) -> list[Any]:
        return list((self._pool.map if self._pool else map)(function, *columns))

    def replay(self, members: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray:
        chosen = [self._members[i] for i in members]
        return self._stack(self._map(Member.replay, chosen, seeds.tolist(), actions))

    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> Outcome:
        results = self._map(Member.step, self._members, actions, next_seeds.tolist())
        obs, final, steps = zip(*results, strict=True)
        return Outcome(
            self._stack(obs),
            self._stack(final),
            np.array([step.reward for step in steps], np.float64),
            np.array([step.cost for step in steps], np.float64),
            np.array([step.terminated for step in steps], bool),
            np.array([step.truncated for step in steps], bool),
        )

    def _stack(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        wanted = self.facts.observations.shape
        for row in rows:
            if row.shape != wanted:
                raise UsageError(f"env: an observation has shape {row.shape}; its space says {wanted}.")
        return np.stack(rows).astype(self.facts.observations.dtype)

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()
        for member in self._members:
            member.close()


class ProcessEnvPool:
    """Members in processes, a stretch of them in each.

    A worker is a program of its own and no fork: it shares no threads with JAX, and never runs the user's script
    again. It leaves when our end of its line closes, so none stays behind when this process is killed.
    """

    def __init__(self, source: str, num_envs: int, workers: int) -> None:
        self._workers: list[_Worker] = []
        bounds = np.linspace(0, num_envs, workers + 1).astype(int).tolist()
        try:
            for first, end in itertools.pairwise(bounds):
                self._workers.append(_Worker(source, range(first, end)))
            self.facts: Facts = [worker.answer() for worker in self._workers][-1]
        except BaseException:
            self.close()
            raise

    def replay(self, members: np.ndarray, seeds: np.ndarray, actions: Sequence[np.ndarray]) -> np.ndarray:
        asked = []
        for worker in self._workers:
            rows = [k for k, i in enumerate(members) if i in worker.members]
            if rows:
                own = np.array([members[k] - worker.members.start for k in rows])
                worker.ask("replay", own, seeds[rows], [actions[k] for k in rows])
                asked.append((worker, rows))
        obs: np.ndarray | None = None
        for worker, rows in asked:
            part = worker.answer()
            obs = np.empty((len(members), *part.shape[1:]), part.dtype) if obs is None else obs
            obs[rows] = part
        assert obs is not None
        return obs

    def step(self, actions: np.ndarray, next_seeds: np.ndarray) -> Outcome:
        for worker in self._workers:
            own = slice(worker.members.start, worker.members.stop)
            worker.ask("step", actions[own], next_seeds[own])
        return Outcome(*map(np.concatenate, zip(*(worker.answer() for worker in self._workers), strict=True)))

    def close(self) -> None:
        for worker in self._workers:
            worker.dismiss()


class _Worker:
    """This side of one worker process."""

    def __init__(self, source: str, members: range) -> None:
        self.source, self.members = source, members
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", WORKER, str(theirs.fileno()), source]
            command += [str(members.start), str(members.stop)]
            paths = [os.getcwd() if path == "" else path for path in sys.path]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        self._line: Connection = Connection(ours.detach())

    def ask(self, *message: Any) -> None:
        try:
            self._line.send(message)
        except OSError:
            raise self._obituary() from None

    def answer(self) -> Any:
        try:
            kind, content = self._line.recv()
        except (EOFError, OSError):
            raise self._obituary() from None
        if kind == "error":
            raise content
        return content

    def _obituary(self) -> RunError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        code = self._process.returncode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        first, last = self.members.start, self.members.stop - 1
        return RunError(
            f"worker process {self._process.pid}, which ran members {first} to {last} of {self.source}, died ({how}); "
            "metrics and the last checkpoint stay."
        )

    def dismiss(self) -> None:
        self._line.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
