"""Checkpoints: trees of arrays in safetensors files with a format version and a checksum, written atomically.

Loading runs no code. A file that is torn, empty, altered or missing raises `Damaged`.

Arrays have the names of `STATE_NAMES` in the file, whatever the fields of the Python state are called. To rename a
field, add its path to `STATE_NAMES`; files stay as they are (tests/storage/test_checkpoint.py lists all names).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from flashbulb.errors import UsageError
from flashbulb.storage.run_identity import read_identity, require_own
from flashbulb.storage.safe_files import read_regular, write_whole

FORMAT = 3

# Path of a node in the training state -> its name in the file. The longest path that fits counts, and what is below it
# keeps its own names, as does what is not listed.
STATE_NAMES = {
    "learner/policy": "policy",
    "learner/optimiser": "policy_optimiser",
    "learner/critics": "critics",
    "learner/multiplier": "multiplier",
    "learner/schedule": "budget",
    "normaliser/seen": "normaliser/count",
}
# Name in a file of format 1, which has no version in its metadata -> name today. Do not edit with STATE_NAMES.
_FORMAT_1_NAMES = {
    "learner/policy": "policy",
    "learner/optimiser": "policy_optimiser",
    "learner/critics": "critics",
    "learner/multiplier": "multiplier",
    "learner/schedule": "budget",
    "normaliser/seen": "normaliser/count",
    "memory/rings": "memory/lidar_groups",
    "flight": "running",
}

Names = Mapping[str, str]
Arrays = dict[str, np.ndarray]
Tree = TypeVar("Tree")


class Damaged(UsageError):
    """A checkpoint is incomplete or altered."""


class CheckpointFile(NamedTuple):
    """What is in a file: arrays by their names in a file of the current format, such as `policy/log_std`, and what
    they are of (`run_identity.py`)."""

    arrays: Arrays
    about: dict[str, Any]


def save_tree(path: Path, tree: Any, names: Names = STATE_NAMES, about: Mapping[str, Any] | None = None) -> None:
    """Write a tree of arrays; `about` are JSON values that are protected with it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    arrays = {file_name(_path(keys), names): np.asarray(leaf, order="C") for keys, leaf in leaves}
    details = {"format": FORMAT, **(about or {})}
    # One entry of metadata: safetensors writes several in random order, and equal states must make equal files.
    metadata = {"flashbulb": json.dumps({**details, "sha256": checksum(arrays, details)})}
    write_whole(path, save(arrays, metadata=metadata))


def load_arrays(path: Path) -> Arrays:
    """The arrays of a checkpoint."""
    return load_file(path).arrays


def load_file(path: Path) -> CheckpointFile:
    """The arrays of a checkpoint and what they are of."""
    try:
        data = read_regular(Path(path))
        arrays = {name: np.array(array) for name, array in load(data).items()}
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        about = json.loads(metadata["flashbulb"]) if "flashbulb" in metadata else dict(metadata)  # of format 1
        recorded, version = about.pop("sha256"), int(about.get("format", 1))
    except FileNotFoundError:
        raise Damaged(f"checkpoint: {path} is not there; name another one.") from None
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise Damaged(f"checkpoint: {path} is damaged ({reason}); name another one.") from None
    refuse_newer(f"checkpoint: {path}", version)
    if checksum(arrays, about if version >= 3 else None) != recorded:
        raise Damaged(f"checkpoint: {path} is damaged (its checksum is wrong); name another one.")
    if version == 1:
        arrays = {file_name(name, _FORMAT_1_NAMES): array for name, array in arrays.items()}
    return CheckpointFile(arrays, about)


def refuse_newer(what: str, version: int) -> None:
    if version > FORMAT:
        raise UsageError(f"{what} has format {version}; this version of Flashbulb reads formats up to {FORMAT}.")


def unflatten(arrays: Arrays, like: Tree, names: Names, path: Path) -> Tree:
    """Arrays by their names in the file as a tree with the structure of `like`; sizes may differ from `like`."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = [file_name(_path(keys), names) for keys, _ in leaves]
    if set(wanted) != set(arrays):
        odd = sorted(set(wanted) ^ set(arrays))[:3]
        raise UsageError(f"checkpoint: {path} does not belong to this algorithm and task (entries {', '.join(odd)}).")
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in wanted])


def read_fields(arrays: Arrays, kind: Any, place: str, names: Names = STATE_NAMES) -> Any:
    """The NamedTuple `kind` that is at `place` in the state. A field with a default may be missing in the file."""
    files = {field: file_name(f"{place}/{field}", names) for field in kind._fields}
    optional = {field for field in kind._field_defaults if files[field] not in arrays}
    return kind(**{field: arrays[name] for field, name in files.items() if field not in optional})


def checksum(arrays: Arrays, about: Mapping[str, Any] | None = None) -> str:
    """SHA-256 of names, types, shapes and contents: of all that a reader gets from the file. Before format 3 there was
    no `about`."""
    digest = hashlib.sha256()
    if about is not None:
        digest.update(json.dumps(about, sort_keys=True).encode() + b"\n")
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def file_name(path: str, names: Names) -> str:
    """The path with its longest prefix in `names` replaced."""
    parts = path.split("/")
    for count in range(len(parts), 0, -1):
        prefix = "/".join(parts[:count])
        if prefix in names:
            return "/".join([names[prefix], *parts[count:]])
    return path


def _path(keys: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in keys)


class Checkpoints:
    """The checkpoints of one run. `000010.safetensors` is the state after 10 iterations, with the policy that samples
    the eleventh (row 10 of metrics.csv).

    They are bound to the run in the directory above, as it is when this object is made. Memories are a `kind` of their
    own: files of the same form, with less in them.
    """

    def __init__(self, directory: Path, kind: str = "checkpoint") -> None:
        self.directory, self.kind = Path(directory), kind
        self.identity = read_identity(self.directory.parent)

    def path(self, done: int) -> Path:
        return self.directory / f"{done:06d}.safetensors"

    def iterations(self) -> list[int]:
        """After how many iterations there is one, in order."""
        stems = [path.stem for path in self.directory.glob("*.safetensors")]
        return sorted(int(stem) for stem in stems if re.fullmatch("[0-9]{6,18}", stem))

    def save(self, done: int, tree: Any, names: Names = STATE_NAMES, rows: Mapping[str, Any] | None = None) -> None:
        """Save the state after `done` iterations; `rows` are the seals of the CSV files by their names."""
        about = {"kind": self.kind, "iteration": done, **(self.identity._asdict() if self.identity else {})}
        save_tree(self.path(done), tree, names, about | ({"rows": dict(rows)} if rows else {}))

    def load(self, path: Path) -> CheckpointFile:
        """A file of this run; one of another run is refused, one of another kind is `Damaged`."""
        file = load_file(path)
        if file.about.get("kind", self.kind) != self.kind:
            raise Damaged(f"checkpoint: {path} is a {file.about['kind']} and no {self.kind}; name another one.")
        if self.kind == "checkpoint" and "totals/iterations" not in file.arrays:  # one of a time without kinds
            raise Damaged(f"checkpoint: {path} is no checkpoint, but something else; name another one.")
        require_own(path, file.about, self.identity)
        return file

    def prune(self, newest: int, best: int | None) -> None:
        """Delete all but the newest few and the best; to be called once the latest is on disk."""
        there = self.iterations()
        for done in set(there[:-newest]) - {best}:
            self.path(done).unlink(missing_ok=True)

    def set_aside(self, done: int) -> None:
        """Rename a damaged file, so that it can be inspected and is not taken for a checkpoint."""
        if os.path.lexists(self.path(done)):
            os.replace(self.path(done), self.path(done).with_suffix(".damaged"))


def best_feasible(metrics: Arrays, limit: float | np.ndarray, candidates: Iterable[int]) -> int | None:
    """The candidate whose policy had the highest return among those that kept the limit (of each row, if they differ)
    when they sampled."""
    kept, returns = metrics["cost"] <= limit, metrics["return"]
    feasible = [done for done in candidates if done < len(kept) and kept[done]]
    return max(feasible, key=lambda done: float(returns[done]), default=None)
