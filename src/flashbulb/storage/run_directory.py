"""A run's directory: what is in it and where.

config.json      resolved configuration, version and commit
metrics.csv      a row per iteration; a function of the configuration and the seed alone
timing.csv       a row per iteration of seconds, which no seed decides
episodes.csv     a row per finished episode
events.out...    TensorBoard, environment steps on the x axis
checkpoints/     everything needed to go on: the newest few, the best that kept the limit, the last
memories/        flashbulb memories of a few times of the run, for `flashbulb memory`
.lock            held by the process that writes
curves.png       return and cost against the limit
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flashbulb.config import Config, to_dict
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import write_whole
from flashbulb.validation import rebuild


class RunDirectory:
    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    metrics = property(lambda self: self.path / "metrics.csv")
    timing = property(lambda self: self.path / "timing.csv")
    episodes = property(lambda self: self.path / "episodes.csv")
    config = property(lambda self: self.path / "config.json")
    checkpoints = property(lambda self: self.path / "checkpoints")
    figure = property(lambda self: self.path / "curves.png")
    how_to_resume = property(lambda self: f"flashbulb resume {shlex.quote(str(self.path))}")

    @classmethod
    def create(cls, config: Config) -> RunDirectory:
        """Make a directory of its own for the run; never write into one that is there already."""
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        base = config.name or f"{config.algorithm}_{re.sub('[:/]', '.', config.env)}_seed{config.seed}_{stamp}"
        directory = cls(_claim(Path(config.runs_dir), base, exact=config.name is not None))
        directory.checkpoints.mkdir()
        text = json.dumps({"config": to_dict(config), **provenance()}, indent=2) + "\n"
        write_whole(directory.config, text.encode())
        return directory

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let no second process write here. The lock ends with this process, however it ends, and workers that it
        forks do not inherit it."""
        with (self.path / ".lock").open("a+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"run: {self.path} is in use by another process; wait for it or stop it.") from None
            yield

    def is_locked(self) -> bool:
        """Whether a process is writing here just now."""
        try:
            with (self.path / ".lock").open("rb") as file:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False


def load_config(run: Path) -> Config:
    """The configuration that a run was started with."""
    path = Path(run) / "config.json"
    try:
        plain = json.loads(path.read_text())["config"]
    except FileNotFoundError:
        raise UsageError(f"run: {run} is not the directory of a run; it has no config.json.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"run: {path} cannot be read ({type(error).__name__}: {error}).") from None
    try:
        return rebuild(plain)
    except UsageError as error:
        raise UsageError(f"run: {path} is not a configuration ({str(error).rstrip('.')}).") from None


def _claim(parent: Path, base: str, exact: bool) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1000):
            path = parent / (base if attempt == 0 else f"{base}-{attempt + 1}")
            try:
                path.mkdir()
                return path
            except FileExistsError:
                if exact:
                    raise UsageError(f"name: {base!r} is taken in {parent}; choose another name.") from None
    except OSError as error:
        raise UsageError(f"runs_dir: cannot write to {parent} ({error.strerror}); name a writable directory.") from None
    raise UsageError(f"runs_dir: {parent} already has a thousand runs called {base}; use --name.")


def provenance() -> dict[str, Any]:
    """With what the run was made."""
    import importlib.metadata
    import platform

    packages = ("flashbulb", "jax", "jaxlib", "mujoco", "numpy", "scipy", "numba", "optax")
    return {
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
    }


def commit() -> str | None:
    """The source's commit, marked where the tree differs from it; None outside a checkout."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
