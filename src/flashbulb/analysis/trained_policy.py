"""A trained policy in use: `load_policy(run).predict(observation)`. Needs the run's directory and no environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.algorithms.critics import Critics
from flashbulb.algorithms.networks import Layer, Network
from flashbulb.algorithms.policy import Categorical, Gaussian, GaussianParams, policy_for
from flashbulb.algorithms.registry import get_algorithm
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.normaliser import FrozenNormaliser, Normaliser
from flashbulb.storage.policy_spaces import Interface

Arrays = dict[str, np.ndarray]


class TrainedPolicy:
    """What a run learned, as a function from observations to actions; its normaliser is frozen.

    An algorithm with a cost budget in its observation (Saute, Simmer) expects that entry last, as in training: what is
    left of the episode's budget over the cost limit, which starts at `budget / config.cost_limit` and is at least -1.
    """

    def __init__(self, arrays: Arrays, interface: Interface, config: Config, seed: int | None = None) -> None:
        self.config, self.interface = config, interface
        self.policy = policy_for(interface.observations, interface.actions)
        self.params = _params(self.policy, arrays)
        self.normalise: FrozenNormaliser = _normaliser(arrays).frozen()
        self.critics = Critics(_network(arrays, "learner/critics/networks/"), ())
        self.steps = int(arrays["totals/steps"])
        self.budget = float(arrays["learner/schedule/budget"]) if "learner/schedule/budget" in arrays else None
        self.rng = np.random.default_rng(seed)

    @property
    def observation_space(self) -> spaces.Box:
        return self.interface.observations

    @property
    def action_space(self) -> spaces.Box | spaces.Discrete:
        return self.interface.actions

    def predict(self, obs: Any, deterministic: bool = True) -> Any:
        """The action for one observation, or actions for a batch with one observation per row.

        They are the environment's own: scaled, inside its bounds and of its type. With `deterministic` it is the
        distribution's mode, otherwise a sample.
        """
        rows, single = self._rows(obs)
        noise = None if deterministic else self._noise(len(rows))
        actions = self.policy.to_env(self.policy.act(self.params, self.normalise(rows), noise))
        space = self.interface.actions
        if isinstance(space, spaces.Box):  # rounding to the space's type must not leave it
            actions = np.clip(actions.astype(space.dtype), space.low, space.high)
        return actions[0] if single else actions

    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        (size,) = self.interface.observations.shape
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
        if get_algorithm(self.config.algorithm).augmentation == "none":
            return ""
        return ", with what is left of the episode's cost budget, over the cost limit, as the last entry"

    def _noise(self, count: int) -> np.ndarray:
        if isinstance(self.policy, Gaussian):
            return self.rng.standard_normal((count, self.policy.size), np.float32)
        assert isinstance(self.policy, Categorical)
        return self.rng.gumbel(size=(count, self.policy.size)).astype(np.float32)


def _params(policy: Any, arrays: Arrays) -> Any:
    prefix = "learner/policy/"
    if isinstance(policy, Gaussian):
        return GaussianParams(_network(arrays, prefix + "mean/"), arrays[prefix + "log_std"])
    return _network(arrays, prefix)


def _network(arrays: Arrays, prefix: str) -> Network:
    layers: Network = []
    while f"{prefix}{len(layers)}/weight" in arrays:
        at = f"{prefix}{len(layers)}"
        layers.append(Layer(arrays[at + "/weight"], arrays[at + "/bias"]))
    return layers


def _normaliser(arrays: Arrays) -> Normaliser:
    return Normaliser(*(arrays[f"normaliser/{name}"] for name in Normaliser._fields))
