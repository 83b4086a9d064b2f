"""Reading what runs left behind: configuration, newest checkpoint, policy. Nothing is executed, nothing is changed."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.run.spaces import load_spaces
from flashbulb.run.trained import TrainedPolicy
from flashbulb.validation import validate


def load_policy(run: str | Path, seed: int | None = None) -> TrainedPolicy:
    """The policy of a run's newest checkpoint, or of the checkpoint named; `seed` is that of its samples."""
    directory, arrays = read_checkpoint(Path(run))
    return TrainedPolicy(arrays, load_spaces(directory), read_config(directory), seed)


def read_config(directory: Path) -> Config:
    """The configuration with which the run in that directory was made."""
    path = directory / "config.json"
    try:
        return validate(_rebuild(Config, json.loads(path.read_text())["config"]))
    except FileNotFoundError:
        raise UsageError(f"run: {directory} is not the directory of a run; it has no config.json.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"run: {path} cannot be read ({error}); name the directory of a run.") from None


def _rebuild(kind: Any, plain: dict[str, Any]) -> Any:
    """A dataclass from the plain values that `to_dict` made of it."""
    default = kind(recipe="", env="") if kind is Config else kind()
    values = {}
    for name, value in plain.items():
        part = getattr(default, name)
        if dataclasses.is_dataclass(part):
            value = _rebuild(type(part), value)
        elif isinstance(part, Path | tuple):
            value = type(part)(value)
        values[name] = value
    return dataclasses.replace(default, **values)


def read_checkpoint(run: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """The run's directory and the arrays of a checkpoint: the one named, or the newest of the run that can be read."""
    if run.is_file():
        return run.parent.parent, _arrays(run)
    if not (run / "config.json").exists():
        raise UsageError(f"run: {run} is not the directory of a run, nor a checkpoint in one.")
    newest_first = sorted((run / "checkpoints").glob("*[0-9].safetensors"), reverse=True)
    for path in newest_first:
        try:
            return run, _arrays(path)
        except UsageError as error:
            print(f"flashbulb: {error} The one before is used.", file=sys.stderr)
    raise UsageError(f"run: {run} has no checkpoint that can be read; train for longer first.")


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        arrays: dict[str, np.ndarray] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"checkpoint: {path} cannot be read ({error}).") from None
    return arrays
