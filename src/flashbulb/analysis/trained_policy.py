"""A trained policy: `load_policy(run).predict(observation)`. Needs the run's directory and no environment."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.critics import Critics
from flashbulb.algorithms.networks import Layer, Network
from flashbulb.algorithms.policy import Categorical, Gaussian, GaussianParams, policy_for
from flashbulb.algorithms.registry import algorithm_of
from flashbulb.config import Config
from flashbulb.cost_units import cost_units
from flashbulb.errors import UsageError
from flashbulb.normaliser import FrozenNormaliser, Normaliser
from flashbulb.shown_text import note_all
from flashbulb.storage.checkpoint import Arrays, Checkpoints, Damaged, read_fields
from flashbulb.storage.run_directory import PolicySpaces, RunDirectory, load_config, load_spaces


def load_policy(run: str | Path, seed: int | None = None, env: str | None = None) -> TrainedPolicy:
    """The policy of a run's newest checkpoint, or of the checkpoint named; `seed` is that of its samples.

    `env` names the run's environment again if it is the user's own; `evaluate` then uses it (`envs/trusted_env.py`).
    """
    directory = run_directory(Path(run))
    config, policy_spaces = load_config(directory), load_spaces(directory)
    path = Path(run).absolute()
    arrays = Checkpoints(path.parent).load(path).arrays if path.is_file() else newest_arrays(directory)
    policy = TrainedPolicy(arrays, policy_spaces, config, seed)
    policy.trusted_env = env
    return policy


def run_directory(run: Path) -> Path:
    """The directory of a run that is named by it or by one of its checkpoints."""
    if not run.is_file():
        return run
    if run.suffix != ".safetensors" or run.absolute().parent.name != "checkpoints":
        raise UsageError(f"run: {run} is not allowed; it must be the directory of a run or one of its checkpoints.")
    return run.absolute().parent.parent


def newest_arrays(directory: Path) -> Arrays:
    """The newest checkpoint of a run that is not damaged."""
    checkpoints = Checkpoints(RunDirectory(directory).checkpoints)
    for done in reversed(checkpoints.iterations()):
        try:
            return checkpoints.load(checkpoints.path(done)).arrays
        except Damaged as error:
            sentence = str(error).removesuffix("; name another one.")
            note_all([f"{sentence}; the one before is used."])
    raise UsageError(f"run: {directory} has no checkpoint that can be read; train for longer first.")


class TrainedPolicy:
    """A function from observations to actions, with a frozen normaliser.

    An algorithm with a cost budget in its observation (Saute, Simmer) expects that entry last, as in training: what is
    left of the episode's budget over the cost limit. It starts at `budget / config.cost_limit` and is at least -1.
    """

    def __init__(self, arrays: Arrays, policy_spaces: PolicySpaces, config: Config, seed: int | None = None) -> None:
        self.config, self.spaces = config, policy_spaces
        self.trusted_env: str | None = None  # the environment that the user has named
        self.policy = policy_for(policy_spaces.observations, policy_spaces.actions)
        try:
            self.params = _params(self.policy, arrays)
            self.normalise: FrozenNormaliser = read_fields(arrays, Normaliser, "normaliser").frozen()
            (size,) = policy_spaces.observations.shape
            if not self.normalise.fits(size):
                raise ValueError(f"its normaliser is not one for {size} observations")
            costs = () if config.cost_normalise == "none" else read_fields(arrays, Normaliser, "cost_normaliser")
            self.cost_units = cost_units(costs, config.cost_normalise)
            self.critics = Critics(_network(arrays, "critics/networks/"), ())
            self.steps = int(arrays["totals/steps"])
            self.budget = float(arrays["budget/budget"]) if "budget/budget" in arrays else None
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"checkpoint: it holds no policy of {config.algorithm} ({error}).") from None
        self.rng = np.random.default_rng(seed)

    @property
    def observation_space(self) -> spaces.Box:
        return self.spaces.observations

    @property
    def action_space(self) -> spaces.Box | spaces.Discrete:
        return self.spaces.actions

    def on(self, env: str | None, env_kwargs: dict[str, Any] | None) -> TrainedPolicy:
        """The same policy for another task or other arguments of it; None keeps what training had."""
        config = self.config
        changed = dataclasses.replace(
            config,
            env=config.env if env is None else env,
            env_kwargs=config.env_kwargs if env_kwargs is None else env_kwargs,
        )
        if changed == config:
            return self
        other = copy.copy(self)
        other.config = changed
        return other

    def predict(self, obs: Any, deterministic: bool = True) -> Any:
        """The action for one observation, or actions for a batch with one observation per row.

        Actions are those of the environment: scaled, inside its bounds and of its type. With `deterministic` they are
        the mode of the distribution, otherwise samples.
        """
        rows, single = self._rows(obs)
        noise = None if deterministic else self._noise(len(rows))
        actions = self.policy.to_env(self.policy.act(self.params, self.normalise(rows), noise))
        space = self.spaces.actions
        if isinstance(space, spaces.Box):  # rounding to the space's type must not leave it
            actions = np.clip(actions.astype(space.dtype), space.low, space.high)
        return actions[0] if single else actions

    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        (size,) = self.spaces.observations.shape
        try:
            rows = np.asarray(obs, dtype=np.float32)
        except (TypeError, ValueError):
            raise UsageError(f"obs: a {type(obs).__name__} is not allowed; it must be {size} numbers.") from None
        single = rows.ndim == 1
        rows = np.atleast_2d(rows)
        if rows.ndim != 2 or rows.shape[1] != size:
            raise UsageError(
                f"obs: shape {np.shape(obs)} is not allowed; it must be ({size},) or (batch, {size})"
                f"{self._budget_note()}."
            )
        if not np.isfinite(rows).all():
            raise UsageError("obs: it holds entries that are not finite; every entry must be a number.")
        return rows, single

    def _budget_note(self) -> str:
        note = algorithm_of(self.config).augmentation_part.note
        return f", {note}" if note else ""

    def _noise(self, count: int) -> np.ndarray:
        if isinstance(self.policy, Gaussian):
            return self.rng.standard_normal((count, self.policy.size), np.float32)
        assert isinstance(self.policy, Categorical)
        return self.rng.gumbel(size=(count, self.policy.size)).astype(np.float32)


def _params(policy: Any, arrays: Arrays) -> Any:
    prefix = "policy/"
    if isinstance(policy, Gaussian):
        return GaussianParams(_network(arrays, prefix + "mean/"), arrays[prefix + "log_std"])
    return _network(arrays, prefix)


def _network(arrays: Arrays, prefix: str) -> Network:
    layers: Network = []
    while f"{prefix}{len(layers)}/weight" in arrays:
        at = f"{prefix}{len(layers)}"
        layers.append(Layer(arrays[at + "/weight"], arrays[at + "/bias"]))
    return layers
