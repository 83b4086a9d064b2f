"""Snapshots of the flashbulb memory at several times of a run; checkpoints are pruned, and these are not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashbulb.algorithms.registry import algorithm_of
from flashbulb.config import Config
from flashbulb.envs import State
from flashbulb.errors import UsageError
from flashbulb.memory import FlashbulbMemory, Memories
from flashbulb.normaliser import FrozenNormaliser, Normaliser
from flashbulb.storage.checkpoint import Arrays, Checkpoints, read_fields

FOLDER = "memories"
KINDS = {FOLDER: "memory", "checkpoints": "checkpoint"}  # of the files in a folder


class MemorySnapshot(NamedTuple):
    """A memory, the normaliser of that time, and an environment in which unsafe states were met."""

    done: int  # iterations
    memory: FlashbulbMemory
    normalise: FrozenNormaliser
    env: State  # of one environment at the start of the iteration, see `most_dangerous_env`


def snapshot_iterations(config: Config) -> set[int]:
    """After how many iterations a snapshot is taken: evenly spaced, at the end as well."""
    if algorithm_of(config).cost_stream != "memory":
        return set()
    count = config.memory.snapshots
    return {math.ceil(config.iterations * k / count) for k in range(1, count + 1)}


def save_memory_snapshot(run: Path, done: int, memory: Memories, normaliser: Normaliser, env: State) -> None:
    """Save the memory after `done` iterations; `env` is the state of one environment."""
    (run / FOLDER).mkdir(exist_ok=True)
    files = Checkpoints(run / FOLDER, KINDS[FOLDER])
    files.save(done, {"memory": memory, "normaliser": normaliser, "env": env})


def most_dangerous_env(state: State, costs: np.ndarray, ended: np.ndarray) -> State:
    """Of environments at the start of a batch, the one whose current episode cost most in it.

    `costs` and `ended` are those of the batch, (time, env), or (time, env, K) of several costs.
    """
    index = most_dangerous(costs, ended)
    return {name: array[index : index + 1] for name, array in state.items()}


def most_dangerous(costs: np.ndarray, ended: np.ndarray) -> int:
    """Index of the environment whose first episode of the batch cost most; several costs are added up."""
    if costs.ndim == 3:
        costs = costs.sum(axis=-1)
    ends_before = np.cumsum(ended, axis=0) - ended
    return int((costs * (ends_before == 0)).sum(axis=0).argmax())


def load_memory_snapshots(run: Path, config: Config, cost: str | None = None) -> list[MemorySnapshot]:
    """All snapshots of a run; where it has none, the memories in its checkpoints. Of several costs each has a memory;
    `cost` names one (default: the first)."""
    names = config.cost_names
    if cost is not None and cost not in names:
        has = f"it has {', '.join(names)}" if names else "it has one cost, without a name"
        raise UsageError(f"cost: {cost!r} is not a cost of {run}; {has}.")
    cost = cost or next(iter(names), "")
    if algorithm_of(config).cost_stream != "memory":
        raise UsageError(
            f"run: {run} was made by {config.algorithm}, which has no memory; name a run of a mice algorithm."
        )
    for folder, kind in KINDS.items():
        files = Checkpoints(run / folder, kind)
        if files.iterations():
            return [read_snapshot(files.load(files.path(done)).arrays, done, cost) for done in files.iterations()]
    raise UsageError(f"run: {run} has saved no memory yet; train for longer first.")


def read_snapshot(arrays: Arrays, done: int, cost: str = "") -> MemorySnapshot:
    """The snapshot in the arrays of a file of this folder, or of a checkpoint; of several costs, that of `cost`."""
    memory = read_fields(arrays, FlashbulbMemory, f"memory/{cost}".rstrip("/"))
    normaliser = read_fields(arrays, Normaliser, "normaliser")
    env = {name.removeprefix("env/"): array[:1] for name, array in arrays.items() if name.startswith("env/")}
    return MemorySnapshot(done, memory, normaliser.frozen(), env)
