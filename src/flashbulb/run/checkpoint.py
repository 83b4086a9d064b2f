"""A tree of arrays on disk: safetensors, written whole or not at all. Loading runs no code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from flashbulb.errors import UsageError

Tree = TypeVar("Tree")


def save_tree(path: Path, tree: Any) -> None:
    """Write beside, flush to disk, then rename: a reader sees the old file or the new one."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    data = save({_name(keys): np.asarray(leaf, order="C") for keys, leaf in leaves})
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_tree(path: Path, like: Tree) -> Tree:
    """The tree that was saved, in the structure of `like`; arrays may have other sizes than there."""
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"checkpoint: {path} cannot be read ({error}); name another checkpoint.") from None
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [_name(keys) for keys, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[:3]
        raise UsageError(f"checkpoint: {path} does not belong to this recipe and task (entries {', '.join(odd)}).")
    return jax.tree_util.tree_unflatten(structure, [arrays[name] for name in names])


def _name(keys: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in keys)
