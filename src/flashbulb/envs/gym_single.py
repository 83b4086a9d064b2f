"""A single user environment: find it by name, build it, step it, and read its results.

Two forms of `step` result are understood: Gymnasium's five values with the cost in `info["cost"]`, and
Safety-Gymnasium's six values with the cost third. With either, `info["costs"]` may have several costs by their names.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import LidarGroups
from flashbulb.envs.registry import EnvSource
from flashbulb.errors import RunError, UsageError

DEFAULT_EPISODE_STEPS = 1000  # if the time limit is unknown; only used to extrapolate costs before an episode ended


class EnvInfo(NamedTuple):
    """The properties that all copies of an environment share."""

    observations: spaces.Space
    actions: spaces.Space
    max_episode_steps: int
    lidar_groups: LidarGroups = ()


class EnvStep(NamedTuple):
    """The result of one step of one environment."""

    obs: Any
    reward: float
    cost: float
    terminated: bool
    truncated: bool
    costs: dict[str, float]  # by name; empty if there is only one, without a name


class PoolStep(NamedTuple):
    """The results of one step of several environments, one row each, after the autoreset."""

    obs: np.ndarray
    final_obs: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    costs: dict[str, np.ndarray]


def known_to_gymnasium(name: str) -> bool:
    """Whether Gymnasium has a task of that id, or can import it."""
    try:
        gymnasium.spec(name)
    except (gymnasium.error.Error, ImportError, ValueError):
        return False
    return True


def find_factory(source: EnvSource) -> Callable[..., Any]:
    """The function that makes the environment, or that is named by `module:function`, `module:id` or a Gymnasium id."""
    if not isinstance(source, str):
        return source
    module_name, colon, name = source.rpartition(":")
    if colon:
        if os.getcwd() not in sys.path:  # an installed script has its own directory there instead
            sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise UsageError(f"env: {source!r} cannot be imported ({describe_error(error)}).") from error
        factory: Any = module
        for part in name.split("."):
            factory = getattr(factory, part, None)
        if callable(factory):
            made: Callable[..., Any] = factory
            return made
        if not known_to_gymnasium(name):
            raise UsageError(
                f"env: module {module_name!r} has no function {name!r} and registers no such Gymnasium id; "
                "say module:function."
            )
    return functools.partial(gymnasium.make, name, disable_env_checker=True)  # its checker insists on five values


def importable_name(source: EnvSource) -> str | None:
    """A name as `module:function` by which another process finds the source; None if there is none."""
    if isinstance(source, str):
        return source
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", None)
    if module in (None, "__main__") or name is None or "<" in name:
        return None
    found: Any = sys.modules.get(str(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is source else None


def source_name(source: EnvSource) -> str:
    """What messages call the source."""
    return source if isinstance(source, str) else getattr(source, "__qualname__", type(source).__name__)


def build_env(source: EnvSource, kwargs: Mapping[str, Any] | None = None) -> Any:
    """Make one environment with these arguments; a failure is reported as one sentence."""
    factory = find_factory(source)
    name = source_name(source)
    try:
        env = factory(**(kwargs or {}))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"env: {name} could not be made ({describe_error(error)}).") from error
    for part in ("reset", "step", "observation_space", "action_space"):
        if not hasattr(env, part):
            raise UsageError(f"env: what {name} makes is no Gymnasium environment; it has no {part}.")
    return env


def time_limit(env: Any) -> int | None:
    """The time limit in steps, if the environment or one of its wrappers states one."""
    steps = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    while steps is None and env is not None:
        own = vars(env) if hasattr(env, "__dict__") else {}
        steps = own.get(
            "_max_episode_steps", own.get("max_episode_steps", getattr(type(env), "max_episode_steps", None))
        )
        env = own.get("env")
    return int(steps) if isinstance(steps, int | np.integer) else None


def env_info(env: Any) -> EnvInfo:
    steps = time_limit(env) or DEFAULT_EPISODE_STEPS
    return EnvInfo(env.observation_space, env.action_space, steps, _lidar_groups(env))


def _lidar_groups(env: Any) -> LidarGroups:
    """Where the environment says that its lidars are, if it says so; refused if that is not in the observation."""
    named = getattr(getattr(env, "unwrapped", env), "lidar_groups", ())
    size = math.prod(env.observation_space.shape or ())
    try:
        groups = tuple((operator.index(first), operator.index(end)) for first, end in named)
        fits = all(0 <= first < end <= size for first, end in groups)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise UsageError(
            f"env: lidar_groups {named!r} is not allowed; it must be pairs (first, end) of entries of the observation, "
            f"which has {size}."
        )
    return groups


def read_step(result: Any) -> EnvStep:
    """Convert the five or six values that `step` returned."""
    if not isinstance(result, tuple) or len(result) not in (5, 6):
        form = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise UsageError(
            f"env: step returns {form}; it must return (obs, reward, terminated, truncated, info) with the cost in "
            'info["cost"], or (obs, reward, cost, terminated, truncated, info).'
        )
    if len(result) == 6:
        obs, reward, cost, terminated, truncated, info = result
        costs = _named_costs(info)
    else:
        obs, reward, terminated, truncated, info = result
        costs = _named_costs(info)
        if "cost" not in info and not costs:
            raise UsageError('env: a step reports no cost; put it into info["cost"] of every step, 0 where it is safe.')
        cost = info["cost"] if "cost" in info else sum(costs.values())
    return EnvStep(obs, float(np.asarray(reward).item()), _one_cost(cost), bool(terminated), bool(truncated), costs)


def _named_costs(info: Any) -> dict[str, float]:
    """What `info["costs"]` has. Whoever limits one of them sees to it that it is a number, so NaN stands for others."""
    costs = info.get("costs") if isinstance(info, Mapping) else None
    return {str(name): _number(cost) for name, cost in costs.items()} if isinstance(costs, Mapping) else {}


def _number(value: Any) -> float:
    try:
        return float(np.asarray(value).item())
    except (TypeError, ValueError):
        return math.nan


def _one_cost(cost: Any) -> float:
    if np.size(cost) != 1:
        raise UsageError(
            f"env: a cost has {np.size(cost)} entries; it must be one number, for one constraint (several have names, "
            'in info["costs"]).'
        )
    cost = float(np.asarray(cost).item())
    if cost < 0:
        raise UsageError(
            f"env: a cost is negative ({cost:g}): costs count what is unsafe and start at 0; what is good belongs into "
            "the reward."
        )
    return cost


class SingleEnv:
    """One copy of the environment, with its index in the batch."""

    def __init__(self, source: EnvSource, index: int, kwargs: Mapping[str, Any] | None = None) -> None:
        self.source, self.index, self.env = source, index, build_env(source, kwargs)

    def replay(self, seed: int, actions: np.ndarray) -> np.ndarray:
        """Start the episode of that seed, repeat the actions, and return the observation at the end."""
        try:
            obs, _ = self.env.reset(seed=seed)
            for action in actions:
                obs = read_step(self.env.step(action)).obs
        except (Exception, SystemExit) as error:
            raise self._as_run_error(error) from error
        return np.asarray(obs)

    def step(self, action: Any, next_seed: int) -> tuple[np.ndarray, np.ndarray, EnvStep]:
        """Step, and reset with `next_seed` if the episode ended. Returns the current observation, the observation
        before any reset, and the result of the step."""
        try:
            step = read_step(self.env.step(action))
            final = np.array(step.obs)
            ended = step.terminated or step.truncated
            obs = np.array(self.env.reset(seed=next_seed)[0]) if ended else final
        except (Exception, SystemExit) as error:  # an exit would end the run as if it were finished
            raise self._as_run_error(error) from error
        return obs, final, step

    def _as_run_error(self, error: BaseException) -> Exception:
        if isinstance(error, UsageError):
            return error
        raised = RunError(f"environment {self.index} of {source_name(self.source)} raised {describe_error(error)}.")
        raised.add_note(user_frames(error))
        return raised

    def close(self) -> None:
        if hasattr(self.env, "close"):
            self.env.close()


def user_frames(error: BaseException) -> str:
    """The traceback of an error from the first frame outside Flashbulb on, as text."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(__file__)
    first = next((k for k, frame in enumerate(frames) if os.path.dirname(frame.filename) != ours), 0)
    return "".join(traceback.format_list(frames[first:])).rstrip()


def describe_error(error: BaseException) -> str:
    """Class, message, file and line of an error in one line, for messages without a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}{place}" if message else f"{type(error).__name__}{place}"
