"""Checkpoints: trees of arrays in safetensors files with a checksum, written whole or not at all.

Loading runs no code. A file that is torn, empty, altered or gone is found out, never half believed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from flashbulb.errors import UsageError

Tree = TypeVar("Tree")


class Damaged(UsageError):
    """A checkpoint cannot be believed."""


def save_tree(path: Path, tree: Any) -> None:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    arrays = {_name(keys): np.asarray(leaf, order="C") for keys, leaf in leaves}
    write_whole(path, save(arrays, metadata={"sha256": checksum(arrays)}))


def write_whole(path: Path, data: bytes) -> None:
    """Write beside, flush to disk, rename, flush the name: a reader sees the old file or the new one, even after
    a loss of power."""
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


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint by their place in the tree, such as `learner/policy/log_std`."""
    try:
        data = Path(path).read_bytes()
        arrays = {name: np.array(array) for name, array in load(data).items()}
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        recorded = header["__metadata__"]["sha256"]
    except FileNotFoundError:
        raise Damaged(f"checkpoint: {path} is not there; name another one.") from None
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"checkpoint: {path} is damaged ({type(error).__name__}: {error}); name another one.") from None
    if checksum(arrays) != recorded:
        raise Damaged(f"checkpoint: {path} is damaged (its checksum is wrong); name another one.")
    return arrays


def unflatten(arrays: dict[str, np.ndarray], like: Tree, path: Path) -> Tree:
    """Arrays in the structure of `like`; they may have other sizes than there."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [_name(keys) for keys, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[:3]
        raise UsageError(f"checkpoint: {path} does not belong to this algorithm and task (entries {', '.join(odd)}).")
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in names])


def checksum(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and contents: of all that a reader gets from the file."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _name(keys: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in keys)


class Checkpoints:
    """Those of one run. `000010.safetensors` is the state after 10 iterations, with the policy that samples the
    eleventh (row 10 of metrics.csv)."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)

    def path(self, done: int) -> Path:
        return self.directory / f"{done:06d}.safetensors"

    def iterations(self) -> list[int]:
        """After how many iterations there is one, in order."""
        return sorted(int(path.stem) for path in self.directory.glob("*.safetensors") if path.stem.isdigit())

    def save(self, done: int, tree: Any) -> None:
        save_tree(self.path(done), tree)

    def prune(self, newest: int, best: int | None) -> None:
        """Delete all but the newest few and the best; to be called once the latest is safe."""
        there = self.iterations()
        for done in set(there[:-newest]) - {best}:
            self.path(done).unlink(missing_ok=True)

    def set_aside(self, done: int) -> None:
        """Keep a damaged file for whoever wants to look at it, where nothing takes it for a checkpoint."""
        if self.path(done).exists():
            os.replace(self.path(done), self.path(done).with_suffix(".damaged"))


def best_feasible(metrics: dict[str, np.ndarray], limit: float, candidates: Iterable[int]) -> int | None:
    """The candidate whose policy had the highest return among those that kept the limit when they sampled."""
    cost, returns = metrics["cost"], metrics["return"]
    feasible = [done for done in candidates if done < len(cost) and cost[done] <= limit]
    return max(feasible, key=lambda done: float(returns[done]), default=None)
