"""Memories of several times of a run, kept beside it: checkpoints are pruned, and only their last few would be left."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashbulb.algorithms.registry import get_algorithm
from flashbulb.batch import Batch
from flashbulb.config import Config
from flashbulb.envs import State
from flashbulb.errors import UsageError
from flashbulb.memory import FlashbulbMemory
from flashbulb.normaliser import FrozenNormaliser, Normaliser
from flashbulb.storage.checkpoint import Checkpoints, load_arrays, save_tree

FOLDER = "memories"


class MemorySnapshot(NamedTuple):
    """A memory as it was, the normaliser through which it was seen, and a world in which it was made."""

    done: int  # iterations
    memory: FlashbulbMemory
    normalise: FrozenNormaliser
    danger: State  # the member to which the most dangerous episode of the last iteration happened, as it began


def snapshot_iterations(config: Config) -> set[int]:
    """After which iterations the memory is kept; evenly spaced, the last one among them."""
    if get_algorithm(config.algorithm).cost_stream != "memory":
        return set()
    count = config.memory.snapshots
    return {math.ceil(config.iterations * k / count) for k in range(1, count + 1)}


def save_memory_snapshot(
    run: Path, memory: FlashbulbMemory, normaliser: Normaliser, before: State, batch: Batch
) -> None:
    """`before` is the environment at the beginning of the iteration that sampled the batch."""
    (run / FOLDER).mkdir(exist_ok=True)
    member = most_dangerous(batch)
    danger = {name: array[member : member + 1] for name, array in before.items()}
    path = Checkpoints(run / FOLDER).path(batch.iteration + 1)
    save_tree(path, {"memory": memory, "normaliser": normaliser, "env": danger})


def most_dangerous(batch: Batch) -> int:
    """The member whose episode at the beginning of the batch cost most in it."""
    ends_before = np.cumsum(batch.ended, axis=0) - batch.ended
    return int((batch.costs * (ends_before == 0)).sum(axis=0).argmax())


def load_memory_snapshots(run: Path, config: Config) -> list[MemorySnapshot]:
    """Those that were kept; of a run that kept none, those of its checkpoints."""
    if get_algorithm(config.algorithm).cost_stream != "memory":
        raise UsageError(
            f"run: {run} was made by {config.algorithm}, which has no memory; name a run of a mice algorithm."
        )
    for folder in (FOLDER, "checkpoints"):
        files = Checkpoints(run / folder)
        if files.iterations():
            return [kept_in(load_arrays(files.path(done)), done) for done in files.iterations()]
    raise UsageError(f"run: {run} has kept no memory yet; train for longer first.")


def kept_in(arrays: dict[str, np.ndarray], done: int) -> MemorySnapshot:
    """What a checkpoint, or a file of this folder, has of it."""
    # Runs of before the salient view have no entries for it.
    memory = FlashbulbMemory(
        *(arrays[f"memory/{name}"] for name in FlashbulbMemory._fields if f"memory/{name}" in arrays)
    )
    normaliser = Normaliser(*(arrays[f"normaliser/{name}"] for name in Normaliser._fields))
    danger = {name.removeprefix("env/"): array[:1] for name, array in arrays.items() if name.startswith("env/")}
    return MemorySnapshot(done, memory, normaliser.frozen(), danger)
