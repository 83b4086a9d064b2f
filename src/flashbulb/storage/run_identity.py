"""What a checkpoint belongs to: its run, the run's settings and spaces, and its iteration.

A run's id is in its config.json and the rest is computed; a checkpoint has all of it in its checksummed metadata. Files
of a run that was begun before there were ids are not compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.safe_files import read_json

# Settings that the results of a run do not depend on.
FREE_SETTINGS = {"threads", "physics", "vectorise", "step_timeout", "runs_dir", "name"}
FREE_SETTINGS |= {"wandb", "checkpoint_every", "keep_checkpoints"}


def refuse_taken_name(config: Config) -> None:
    """Refuse a run's name that is taken before the seconds of preparation; `RunDirectory.create` decides in the end."""
    path = Path(config.runs_dir) / (config.name or "")
    empty = path.is_dir() and {inside.name for inside in path.iterdir()} <= {"checkpoints"}  # `create` takes it over
    if config.name is not None and path.exists() and not empty:
        raise UsageError(f"name: {config.name!r} is taken in {config.runs_dir}; choose another name.")


class RunIdentity(NamedTuple):
    """The id of a run and the SHA-256 of its settings and of its spaces, None where there is no such file yet."""

    run: str
    config: str
    spaces: str | None


def read_identity(run: Path) -> RunIdentity | None:
    """The identity of the run in this directory; None if it has no id."""
    try:
        saved = read_json(run / "config.json")
        number, settings = saved.get("id"), saved.get("config")
    except (OSError, ValueError, AttributeError):
        return None
    if not isinstance(number, str) or not isinstance(settings, dict):
        return None
    extended = saved.get("extended")  # a longer run keeps the checkpoints of the shorter one
    started = extended[0].get("from_steps") if extended else settings.get("steps")
    return RunIdentity(number, _digest(_results_depend_on({**settings, "steps": started})), _spaces(run))


def _results_depend_on(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in FREE_SETTINGS}


def _spaces(run: Path) -> str | None:
    try:
        return _digest(read_json(run / "spaces.json"))
    except (OSError, ValueError):
        return None


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def require_own(path: Path, about: Mapping[str, Any], identity: RunIdentity | None) -> None:
    """Refuse a file whose metadata `about` says that it belongs to another run, or to this one with other settings."""
    if identity is None:
        return
    config = path.parent.parent / "config.json"
    if about.get("run") != identity.run:
        raise UsageError(f"checkpoint: {path} belongs to another run than {config}; take it away.")
    if about.get("config") != identity.config:
        raise UsageError(f"checkpoint: {path} was written with other settings than {config} has; put them back.")
    if identity.spaces is not None and about.get("spaces") not in (None, identity.spaces):
        spaces = path.parent.parent / "spaces.json"
        raise UsageError(f"checkpoint: {path} was written with other spaces than {spaces} has; put them back.")
    if path.stem.isdecimal() and about.get("iteration") != int(path.stem):
        found = about.get("iteration")
        raise UsageError(f"checkpoint: {path} is of iteration {found}, so it was renamed or copied; take it away.")
