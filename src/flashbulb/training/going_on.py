"""Going on from an earlier run: more steps for it, or a new run that starts from its networks."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.analysis.trained_policy import newest_arrays, run_directory
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import STATE_NAMES, Arrays, file_name, load_arrays, write_whole
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training.train_state import TrainState
from flashbulb.validation import refusal

Tree = TypeVar("Tree")


def with_more_steps(config: Config, steps: int | None) -> Config:
    """The configuration of a run that is to have this many steps in all; no fewer than it was started for."""
    if steps is None:
        return config
    if steps < config.steps:
        raise refusal("steps", steps, f"at least {config.steps}, which the run was started for")
    return dataclasses.replace(config, steps=steps)


def record_steps(directory: RunDirectory, steps: int, done: int) -> None:
    """Write the new number of steps to config.json, and in `extended` after how many iterations it changed.

    Checkpoints stay valid: they belong to the settings that the run was started with (`storage/run_identity.py`).
    """
    saved = json.loads(directory.config.read_text())
    change = {"iteration": done, "from_steps": saved["config"]["steps"], "to_steps": steps}
    saved["extended"] = [*saved.get("extended", []), change]
    saved["config"]["steps"] = steps
    write_whole(directory.config, (json.dumps(saved, indent=2) + "\n").encode())


def start_from(state: TrainState, source: Path) -> TrainState:
    """The state with the policy, the critics and the normaliser of another run, or of one of its checkpoints.

    Optimisers, multiplier, memory and counts start anew. Sizes must agree.
    """
    arrays = load_arrays(source) if source.is_file() else newest_arrays(run_directory(source))
    learner = state.learner
    networks = _filled(learner.critics.networks, "learner/critics/networks", arrays, source)
    learner = learner._replace(
        policy=_filled(learner.policy, "learner/policy", arrays, source),
        critics=learner.critics._replace(networks=networks),
    )
    normaliser = _filled(state.normaliser, "normaliser", arrays, source, to_jax=False)
    if not np.array_equal(normaliser.near, state.normaliser.near):
        raise UsageError(f"init_from: {source} does not fit; its lidars are other entries of the observation.")
    return state._replace(
        learner=learner,
        normaliser=normaliser,
        cost_normaliser=_filled(state.cost_normaliser, "cost_normaliser", arrays, source, to_jax=False),
    )


def _filled(tree: Tree, place: str, arrays: Arrays, source: Path, to_jax: bool = True) -> Tree:
    """The tree with the arrays that a checkpoint has at that place; refused if one is missing or of another shape."""

    def fill(keys: Any, leaf: Any) -> Any:
        path = f"{place}/{jax.tree_util.keystr(keys, simple=True, separator='/')}"
        found = arrays.get(file_name(path, STATE_NAMES))
        if found is None or found.shape != np.shape(leaf):
            has = "nothing" if found is None else f"shape {found.shape}"
            raise UsageError(
                f"init_from: {source} does not fit; {path.removeprefix('learner/')} must have shape {np.shape(leaf)}, "
                f"and it has {has} (the same observations, actions, hidden layers and critics are needed)."
            )
        return jnp.asarray(found) if to_jax else found

    return jax.tree_util.tree_map_with_path(fill, tree)
