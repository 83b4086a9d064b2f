"""Checkpoints: trees of arrays in safetensors files with a format version and a checksum, written atomically.

Loading runs no code. A file that is torn, empty, altered or missing raises `Damaged`.

Arrays have the names of `STATE_NAMES` in the file, whatever the fields of the Python state are called. To rename a
field, add its path to `STATE_NAMES`; files stay as they are (tests/storage/test_checkpoint.py lists all names).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from flashbulb.errors import UsageError

FORMAT = 2

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


def save_tree(path: Path, tree: Any, names: Names = STATE_NAMES) -> None:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    arrays = {file_name(_path(keys), names): np.asarray(leaf, order="C") for keys, leaf in leaves}
    # One entry of metadata: safetensors writes several in random order, and equal states must make equal files.
    metadata = {"flashbulb": json.dumps({"format": FORMAT, "sha256": checksum(arrays)})}
    write_whole(path, save(arrays, metadata=metadata))


def write_whole(path: Path, data: bytes) -> None:
    """Write a temporary file, flush it, rename it, flush the directory: a reader sees the old file or the new one, even
    after a loss of power."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def load_arrays(path: Path) -> Arrays:
    """The arrays of a checkpoint by their names in a file of the current format, such as `policy/log_std`."""
    try:
        data = Path(path).read_bytes()
        arrays = {name: np.array(array) for name, array in load(data).items()}
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        about = json.loads(metadata["flashbulb"]) if "flashbulb" in metadata else metadata  # of format 1
        recorded, version = about["sha256"], int(about.get("format", 1))
    except FileNotFoundError:
        raise Damaged(f"checkpoint: {path} is not there; name another one.") from None
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"checkpoint: {path} is damaged ({type(error).__name__}: {error}); name another one.") from None
    refuse_newer(f"checkpoint: {path}", version)
    if checksum(arrays) != recorded:
        raise Damaged(f"checkpoint: {path} is damaged (its checksum is wrong); name another one.")
    if version == 1:
        return {file_name(name, _FORMAT_1_NAMES): array for name, array in arrays.items()}
    return arrays


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


def checksum(arrays: Arrays) -> str:
    """SHA-256 of names, types, shapes and contents: of all that a reader gets from the file."""
    digest = hashlib.sha256()
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
    the eleventh (row 10 of metrics.csv)."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)

    def path(self, done: int) -> Path:
        return self.directory / f"{done:06d}.safetensors"

    def iterations(self) -> list[int]:
        """After how many iterations there is one, in order."""
        return sorted(int(path.stem) for path in self.directory.glob("*.safetensors") if path.stem.isdigit())

    def save(self, done: int, tree: Any, names: Names = STATE_NAMES) -> None:
        save_tree(self.path(done), tree, names)

    def prune(self, newest: int, best: int | None) -> None:
        """Delete all but the newest few and the best; to be called once the latest is on disk."""
        there = self.iterations()
        for done in set(there[:-newest]) - {best}:
            self.path(done).unlink(missing_ok=True)

    def set_aside(self, done: int) -> None:
        """Rename a damaged file, so that it can be inspected and is not taken for a checkpoint."""
        if self.path(done).exists():
            os.replace(self.path(done), self.path(done).with_suffix(".damaged"))


def best_feasible(metrics: Arrays, limit: float, candidates: Iterable[int]) -> int | None:
    """The candidate whose policy had the highest return among those that kept the limit when they sampled."""
    cost, returns = metrics["cost"], metrics["return"]
    feasible = [done for done in candidates if done < len(cost) and cost[done] <= limit]
    return max(feasible, key=lambda done: float(returns[done]), default=None)
