"""A run's directory: what is in it and where.

config.json      format version, resolved configuration, versions of packages, commit
spaces.json      spaces of observations and actions, so that the policy can be used without its environment
metrics.csv      a row per iteration; a function of the configuration and the seed alone
timing.csv       seconds of each iteration
episodes.csv     a row per finished episode
events.out...    TensorBoard, environment steps on the x axis
checkpoints/     all that is needed to resume: the newest few, the best that kept the limit, the last
memories/        snapshots of the flashbulb memory, for `flashbulb memory`
.lock            held by the process that writes
curves.png       return and cost against the limit
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import math
import os
import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from flashbulb.config import Config, to_dict
from flashbulb.envs import CostVectorEnv
from flashbulb.errors import RunError, UsageError
from flashbulb.storage.checkpoint import FORMAT, refuse_newer
from flashbulb.storage.provenance import provenance
from flashbulb.storage.run_lock import RunLock, is_locked
from flashbulb.storage.safe_files import read_json, sync_directory, write_whole
from flashbulb.validation import rebuild

SPACES_FILE = "spaces.json"


class RunDirectory:
    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock: RunLock | None = None

    metrics = property(lambda self: self.path / "metrics.csv")
    timing = property(lambda self: self.path / "timing.csv")
    episodes = property(lambda self: self.path / "episodes.csv")
    config = property(lambda self: self.path / "config.json")
    checkpoints = property(lambda self: self.path / "checkpoints")
    figure = property(lambda self: self.path / "curves.png")

    @classmethod
    def create(cls, config: Config) -> RunDirectory:
        """Make a new directory for the run; an existing one is never written into."""
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        base = config.name or f"{config.algorithm}_{re.sub('[:/]', '.', config.env)}_seed{config.seed}_{stamp}"
        content = {"format": FORMAT, "id": secrets.token_hex(16), "config": to_dict(config), **provenance()}
        text = json.dumps(content, indent=2) + "\n"
        return cls(_claim(Path(config.runs_dir), base, config.name is not None, text.encode()))

    def how_to_resume(self, env: str) -> str:
        """The command that goes on with the run; an environment of the user's own is named again."""
        return shlex.join(["flashbulb", "resume", str(self.path), *(["--env", env] if ":" in env else [])])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here. The lock ends with this process, however it ends, and forked workers
        do not inherit it."""
        lock = RunLock(self.path / ".lock")
        if not lock.acquire():
            raise UsageError(f"run: {self.path} is in use by another process; wait for it or stop it.")
        self._lock = lock
        try:
            yield
        finally:
            self._lock = None
            lock.release()

    def require_lock(self) -> None:
        """Stop if the lock was removed or replaced while it was held, since another process may be writing now."""
        if self._lock is not None and self.path.is_dir() and not self._lock.is_ours():
            raise RunError(f"{self.path / '.lock'} was removed, so that another process may be writing here.")

    def is_locked(self) -> bool:
        """Whether a process is writing here."""
        return is_locked(self.path / ".lock")


def load_config(run: Path) -> Config:
    """The configuration that a run was started with, in today's words."""
    path = Path(run) / "config.json"
    try:
        saved = read_json(path)
        plain, version = saved["config"], int(saved.get("format", 1))
    except FileNotFoundError:
        raise UsageError(f"run: {run} is not the directory of a run; it has no config.json.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"run: {path} cannot be read ({type(error).__name__}: {error}).") from None
    refuse_newer(f"run: {path}", version)
    if version == 1 and isinstance(plain, dict) and "recipe" in plain:
        plain = {"algorithm": plain["recipe"], **{name: value for name, value in plain.items() if name != "recipe"}}
    try:
        config = rebuild(plain)
    except (UsageError, RecursionError) as error:
        raise UsageError(f"run: {path} is not a configuration ({str(error).rstrip('.')}).") from None
    for field, name in (("algorithm", config.algorithm), ("env", config.env)):
        if not name.isprintable():  # it would reach the terminal
            raise UsageError(f"run: {path} is not a configuration ({field}: {name!r} has control characters).")
    return config


class PolicySpaces(NamedTuple):
    """The spaces as the agent sees them, with the cost budget where the algorithm has one."""

    observations: spaces.Box
    actions: spaces.Box | spaces.Discrete
    max_episode_steps: int


def save_spaces(directory: Path, env: CostVectorEnv) -> None:
    write_whole(directory / SPACES_FILE, _spaces_text(env))


def check_spaces(directory: Path, env: CostVectorEnv) -> None:
    """Refuse an environment with other spaces than those that the run was started with, if it has saved them."""
    path = directory / SPACES_FILE
    if os.path.lexists(path):
        load_spaces(directory)
        if read_json(path) != json.loads(_spaces_text(env)):
            raise UsageError(f"run: {path} has other spaces than {env.env_id}; put it back, or the environment.")


def _spaces_text(env: CostVectorEnv) -> bytes:
    plain = {
        "observation": _space_to_dict(env.single_observation_space),
        "action": _space_to_dict(env.single_action_space),
        "max_episode_steps": env.max_episode_steps,
    }
    return (json.dumps(plain, indent=1) + "\n").encode()


def load_spaces(directory: Path) -> PolicySpaces:
    path = directory / SPACES_FILE
    try:
        plain = read_json(path)
        observations, actions = _space_from_dict(plain["observation"]), _space_from_dict(plain["action"])
        steps = int(plain["max_episode_steps"])
    except (OSError, ValueError, KeyError, TypeError, AssertionError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"run: {path} cannot be read ({reason}); name the directory of a run.") from None
    if not isinstance(observations, spaces.Box) or len(observations.shape) != 1:
        raise UsageError(f"run: {path} has no box of one dimension for observations; name the directory of a run.")
    return PolicySpaces(observations, actions, steps)


def _space_to_dict(space: spaces.Space) -> dict[str, Any]:
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.Box)  # policy_for refuses all others
    return {
        "kind": "box",
        "shape": list(space.shape),
        "dtype": np.dtype(space.dtype).name,
        "low": [_finite(x) for x in space.low.ravel().tolist()],
        "high": [_finite(x) for x in space.high.ravel().tolist()],
    }


def _finite(bound: float) -> float | None:
    """JSON has no infinity; null stands for no bound."""
    return bound if math.isfinite(bound) else None


def _space_from_dict(plain: dict[str, Any]) -> spaces.Box | spaces.Discrete:
    if plain["kind"] == "discrete":
        return spaces.Discrete(plain["n"], start=plain["start"])
    dtype, shape = np.dtype(plain["dtype"]), tuple(plain["shape"])
    low = np.array([-np.inf if x is None else x for x in plain["low"]], dtype).reshape(shape)
    high = np.array([np.inf if x is None else x for x in plain["high"]], dtype).reshape(shape)
    return spaces.Box(low, high, dtype=dtype.type)


def _claim(parent: Path, base: str, exact: bool, config: bytes) -> Path:
    """Make the directory with its first files under a temporary name, then give it its own: killed in between, it
    leaves the name free. An empty directory of that name, which an earlier version may have left, is taken over."""
    nest: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        nest = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
        (nest / "run" / "checkpoints").mkdir(parents=True)
        write_whole(nest / "run" / "config.json", config)
        for attempt in range(1000):
            path = parent / (base if attempt == 0 else f"{base}-{attempt + 1}")
            _remove_empty_claim(path)
            try:
                os.rename(nest / "run", path)  # fails if there is anything but an empty directory
                sync_directory(parent)
                return path
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise
                if exact:
                    raise UsageError(f"name: {base!r} is taken in {parent}; choose another name.") from None
    except OSError as error:
        raise UsageError(f"runs_dir: cannot write to {parent} ({error.strerror}); name a writable directory.") from None
    finally:
        if nest is not None:
            shutil.rmtree(nest, ignore_errors=True)
    raise UsageError(f"runs_dir: {parent} already has a thousand runs called {base}; use --name.")


def _remove_empty_claim(path: Path) -> None:
    """Remove the empty folder that is all that a process of an earlier version left when it was killed."""
    if path.is_dir() and not path.is_symlink() and [inside.name for inside in path.iterdir()] == ["checkpoints"]:
        with contextlib.suppress(OSError):  # it is not empty
            (path / "checkpoints").rmdir()
