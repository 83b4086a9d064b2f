"""One foreign environment: found by its name, stepped, and its answers brought into one form.

Two kinds of answer are understood: Gymnasium's five values with the cost in `info["cost"]`, and Safety-Gymnasium's
six with the cost third.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from flashbulb.errors import RunError, UsageError

ASSUMED_LENGTH = 1000  # of an episode whose limit is unknown; only to extrapolate its cost before one has ended


class Facts(NamedTuple):
    """What a batch must know of its members."""

    observations: spaces.Space
    actions: spaces.Space
    max_episode_steps: int


class Step(NamedTuple):
    obs: Any
    reward: float
    cost: float
    terminated: bool
    truncated: bool


class Outcome(NamedTuple):
    """The steps of some members, a row for each; autoreset has happened, as the contract says."""

    obs: np.ndarray
    final_obs: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def known_to_gymnasium(name: str) -> bool:
    try:
        gymnasium.spec(name)
    except (gymnasium.error.Error, ImportError, ValueError):
        return False
    return True


def find(source: str) -> Callable[[], Any]:
    """A function that makes the environment: `module:function`, `module:id` or an id that Gymnasium knows."""
    module_name, colon, name = source.rpartition(":")
    if colon:
        if os.getcwd() not in sys.path:  # an installed script has its own directory there instead
            sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise UsageError(f"env: {source!r} cannot be imported ({said_by(error)}).") from error
        factory = getattr(module, name, None)
        if callable(factory):
            return factory
        if not known_to_gymnasium(name):
            raise UsageError(
                f"env: module {module_name!r} has no function {name!r} and registers no such Gymnasium id; "
                "say module:function."
            )
    return lambda: gymnasium.make(name, disable_env_checker=True)  # its checker insists on five values


def build(source: str) -> Any:
    """One environment, or one sentence on why there is none."""
    factory = find(source)
    try:
        env = factory()
    except Exception as error:
        raise UsageError(f"env: {source} could not be made ({said_by(error)}).") from error
    for part in ("reset", "step", "observation_space", "action_space"):
        if not hasattr(env, part):
            raise UsageError(f"env: what {source} makes is no Gymnasium environment; it has no {part}.")
    return env


def time_limit(env: Any) -> int | None:
    """The longest episode, where the environment or one of its wrappers tells."""
    steps = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    while steps is None and env is not None:
        own = vars(env) if hasattr(env, "__dict__") else {}
        steps = own.get(
            "_max_episode_steps", own.get("max_episode_steps", getattr(type(env), "max_episode_steps", None))
        )
        env = own.get("env")
    return int(steps) if isinstance(steps, int | np.integer) else None


def facts_of(env: Any) -> Facts:
    return Facts(env.observation_space, env.action_space, time_limit(env) or ASSUMED_LENGTH)


def read_step(answer: Any) -> Step:
    """Bring five or six values into one form."""
    if not isinstance(answer, tuple) or len(answer) not in (5, 6):
        said = f"{len(answer)} values" if isinstance(answer, tuple) else f"a {type(answer).__name__}"
        raise UsageError(
            f"env: step returns {said}; it must return (obs, reward, terminated, truncated, info) with the cost in "
            'info["cost"], or (obs, reward, cost, terminated, truncated, info).'
        )
    if len(answer) == 6:
        obs, reward, cost, terminated, truncated, _ = answer
    else:
        obs, reward, terminated, truncated, info = answer
        if "cost" not in info:
            raise UsageError('env: a step reports no cost; put it into info["cost"] of every step, 0 where it is safe.')
        cost = info["cost"]
    if np.size(cost) != 1:
        raise UsageError(
            f"env: a cost has {np.size(cost)} entries; it must be one number, for one constraint (add several up, or "
            "report the one that matters)."
        )
    return Step(
        obs, float(np.asarray(reward).item()), float(np.asarray(cost).item()), bool(terminated), bool(truncated)
    )


class Member:
    """One copy of the environment, as member `index` of a batch."""

    def __init__(self, source: str, index: int) -> None:
        self.source, self.index, self.env = source, index, build(source)

    def replay(self, seed: int, actions: np.ndarray) -> np.ndarray:
        """Begin the episode of that seed and repeat what was done in it; returns where that leads."""
        try:
            obs, _ = self.env.reset(seed=seed)
            for action in actions:
                obs = read_step(self.env.step(action)).obs
        except Exception as error:
            raise self._told(error) from error
        return np.asarray(obs)

    def step(self, action: Any, next_seed: int) -> tuple[np.ndarray, np.ndarray, Step]:
        """Its observation now, the one before any reset, and what the step brought."""
        try:
            step = read_step(self.env.step(action))
            final = np.array(step.obs)
            ended = step.terminated or step.truncated
            obs = np.array(self.env.reset(seed=next_seed)[0]) if ended else final
        except Exception as error:
            raise self._told(error) from error
        return obs, final, step

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, UsageError):
            return error
        return RunError(f"member {self.index} of {self.source} raised {said_by(error)}.")

    def close(self) -> None:
        if hasattr(self.env, "close"):
            self.env.close()


def said_by(error: BaseException) -> str:
    """Kind, message and place of an error in one line, for those who never see the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}{place}" if message else f"{type(error).__name__}{place}"
