"""Real training processes for the tests of resume: started, killed, compared.

They are forked from a server that has everything imported but has computed nothing, so that a process costs a
fraction of a second more than its iterations.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path

import numpy as np

from flashbulb.storage.checkpoint import checksum, load_arrays

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "flashbulb.training.loop",
        "flashbulb.envs.velocity",
        "flashbulb.envs.navigation",
        "scipy.stats",
        "matplotlib.figure",
    ]
)

TINY = {
    "steps": 6_000,
    "num_envs": 2,
    "steps_per_iteration": 100,
    "checkpoint_every": 2,
    "cost_limit": 1.0,
    "seed": 5,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "proximal": {"passes": 1},
    "trust_region": {"cg_iterations": 3, "search_steps": 3},
    "memory": {"neighbours": 2, "window": 3},
    "vectorise": "serial",
}


def train_or_resume(directory: Path, algorithm: str, env: str, settings: dict) -> None:
    """What a person would do: start the run, or go on with it where it is there already."""
    from rich.console import Console

    from flashbulb.algorithms.registry import configure
    from flashbulb.training.loop import resume, train

    with open(os.devnull, "w") as nowhere:
        console = Console(file=nowhere)
        if (directory / "config.json").exists():
            resume(directory, console, trusted_env=env)
        else:
            train(configure(algorithm, env, runs_dir=directory.parent, name=directory.name, **settings), console)


def process(directory: Path, algorithm: str, env: str, settings: dict):
    started = PROCESSES.Process(target=train_or_resume, args=(directory, algorithm, env, settings))
    started.start()
    return started


def command(arguments: list[str], output: Path, file_size: int | None = None):
    """The command line in a process, its output in a file; no file of it may grow beyond `file_size`."""
    started = PROCESSES.Process(target=_command, args=(arguments, output, file_size))
    started.start()
    return started


def _command(arguments: list[str], output: Path, file_size: int | None) -> None:
    from flashbulb.cli.main import main

    handle = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))
    main(arguments)


def run_to_end(directory: Path, algorithm: str, env: str, settings: dict = TINY) -> None:
    started = process(directory, algorithm, env, settings)
    started.join(120)
    assert started.exitcode == 0


def kill_at_random(directory: Path, algorithm: str, env: str, rng: np.random.Generator, settings: dict = TINY) -> bool:
    """Start or resume, and SIGKILL at a random moment; returns whether it was in time.

    The moment is counted in rows and not in seconds, so that it falls among the iterations on a busy machine too; the
    fraction of a second after it makes it fall anywhere within one: sampling, learning, writing a row, a checkpoint.
    """
    before = rows(directory)
    ahead, fraction = int(rng.integers(1, 5)), rng.uniform(0, 0.02)
    started = process(directory, algorithm, env, settings)
    deadline = time.monotonic() + 120
    while started.is_alive() and rows(directory) < before + ahead and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(fraction)
    os.kill(started.pid, signal.SIGKILL)
    started.join()
    return started.exitcode == -signal.SIGKILL


def rows(directory: Path) -> int:
    """Rows that the latest process has written; resuming cuts those that it is going to write again."""
    metrics = directory / "metrics.csv"
    try:
        return metrics.read_bytes().count(b"\n") - 1
    except FileNotFoundError:
        return 0


def assert_identical(directory: Path, other: Path, iterations: int) -> None:
    """All that a run leaves, but for the times that it took."""
    checkpoint = f"checkpoints/{iterations:06d}.safetensors"
    for name in ("metrics.csv", "episodes.csv"):
        assert (directory / name).read_bytes() == (other / name).read_bytes(), name
    ours, theirs = (load_arrays(run / checkpoint) for run in (directory, other))  # their runs have ids of their own
    assert checksum(ours) == checksum(theirs)
    assert rows(other) == iterations
