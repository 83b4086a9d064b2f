"""What a policy sees and does, as JSON beside the run: so that it can be used where its environment is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from flashbulb.envs import CostVectorEnv
from flashbulb.errors import UsageError

FILE = "spaces.json"


class Interface(NamedTuple):
    """The spaces as the agent sees them, its budget included where the algorithm has one."""

    observations: spaces.Box
    actions: spaces.Box | spaces.Discrete
    max_episode_steps: int


def save_spaces(directory: Path, env: CostVectorEnv) -> None:
    plain = {
        "observation": _plain(env.single_observation_space),
        "action": _plain(env.single_action_space),
        "max_episode_steps": env.max_episode_steps,
    }
    (directory / FILE).write_text(json.dumps(plain, indent=1) + "\n")


def load_spaces(directory: Path) -> Interface:
    path = directory / FILE
    try:
        plain = json.loads(path.read_text())
        observations, actions = _space(plain["observation"]), _space(plain["action"])
        steps = int(plain["max_episode_steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"run: {path} cannot be read ({error}); name the directory of a run.") from None
    assert isinstance(observations, spaces.Box)
    return Interface(observations, actions, steps)


def _plain(space: spaces.Space) -> dict[str, Any]:
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.Box)  # policy_for has refused all others
    return {
        "kind": "box",
        "shape": list(space.shape),
        "dtype": np.dtype(space.dtype).name,
        "low": [_finite(x) for x in space.low.ravel().tolist()],
        "high": [_finite(x) for x in space.high.ravel().tolist()],
    }


def _finite(bound: float) -> float | None:
    """JSON has no infinity; none is said by null."""
    return bound if math.isfinite(bound) else None


def _space(plain: dict[str, Any]) -> spaces.Box | spaces.Discrete:
    if plain["kind"] == "discrete":
        return spaces.Discrete(plain["n"], start=plain["start"])
    dtype, shape = np.dtype(plain["dtype"]), tuple(plain["shape"])
    low = np.array([-np.inf if x is None else x for x in plain["low"]], dtype).reshape(shape)
    high = np.array([np.inf if x is None else x for x in plain["high"]], dtype).reshape(shape)
    return spaces.Box(low, high, dtype=dtype.type)
