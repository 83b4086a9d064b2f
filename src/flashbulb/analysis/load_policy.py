"""A policy from what its run left behind. Nothing is executed, nothing is changed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import Checkpoints, Damaged, load_arrays
from flashbulb.storage.policy_spaces import load_spaces
from flashbulb.storage.run_directory import RunDirectory, load_config


def load_policy(run: str | Path, seed: int | None = None) -> TrainedPolicy:
    """The policy of a run's newest checkpoint, or of the checkpoint named; `seed` is that of its samples."""
    directory = run_directory(Path(run))
    config, interface = load_config(directory), load_spaces(directory)
    arrays = load_arrays(Path(run)) if Path(run).is_file() else newest_arrays(directory)
    return TrainedPolicy(arrays, interface, config, seed)


def run_directory(run: Path) -> Path:
    """The directory of a run that is named by it or by one of its checkpoints."""
    return run.absolute().parent.parent if run.is_file() else run


def newest_arrays(directory: Path) -> dict[str, np.ndarray]:
    """The newest checkpoint that can be believed."""
    checkpoints = Checkpoints(RunDirectory(directory).checkpoints)
    for done in reversed(checkpoints.iterations()):
        try:
            return load_arrays(checkpoints.path(done))
        except Damaged as error:
            sentence = str(error).removesuffix("; name another one.")
            print(f"flashbulb: {sentence}; the one before is used.", file=sys.stderr)
    raise UsageError(f"run: {directory} has no checkpoint that can be read; train for longer first.")
