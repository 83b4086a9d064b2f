"""Runs a user environment with random actions and reports what prevents training on it.

Each check reports one sentence that includes the remedy. Checks are skipped if an earlier one found that they cannot
run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.envs.gym_single import EnvStep, build_env, describe_error, read_step, time_limit
from flashbulb.envs.registry import EnvSource
from flashbulb.errors import UsageError

STEPS = 10_000  # most random actions; fewer if EPISODES episodes end before
EPISODES = 3
SECONDS = 30.0
REPEATED = 50  # steps that are repeated to compare them
SEED = 20_250


@dataclass
class Findings:
    """`problems` must be repaired; `notes` are worth knowing."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)


@dataclass
class Played:
    """Costs and episode lengths under random actions."""

    costs: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    truncations: int = 0
    names: dict[str, None] = field(default_factory=dict)  # of several costs, in the order in which they occurred


def check(source: EnvSource, max_steps: int = STEPS, kwargs: Mapping[str, Any] | None = None) -> Findings:
    """Check the environment of that name, made with these arguments, and return all problems found."""
    found = Findings()
    try:
        env = build_env(source, kwargs)
    except UsageError as error:
        found.problem(str(error).removeprefix("env: "))
        return found
    if not _spaces(env, found) or not _reset(env, found):
        return found
    try:
        played = _play(env, max_steps, found)
        _costs(played, found)
        _episodes(env, played, found)
        if not found.problems:
            _repeats(build_env(source, kwargs), env, found)
    except UsageError as error:  # a result that cannot be read at all
        found.problem(str(error).removeprefix("env: "))
    except Exception as error:
        found.problem(f"step or reset raised {describe_error(error)}.")
    return found


def _spaces(env: Any, found: Findings) -> bool:
    observations, actions = env.observation_space, env.action_space
    if not isinstance(observations, spaces.Box) or len(observations.shape) != 1:
        found.problem(
            f"The observation space is {observations}, which is not supported: make it a Box of one dimension, for "
            "example with gymnasium.wrappers.FlattenObservation."
        )
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        found.problem(f"The action space is {actions}, which is not supported: make it a Box or a Discrete.")
    elif isinstance(actions, spaces.Box) and not (np.isfinite(actions.low) & np.isfinite(actions.high)).all():
        found.notes.append(
            "The action bounds are infinite: actions are scaled to their bounds, so learning starts with standard "
            "normal actions here; finite bounds let you choose their scale."
        )
    return not found.problems


def _reset(env: Any, found: Findings) -> bool:
    try:
        result = env.reset(seed=SEED)
    except TypeError as error:
        found.problem(
            f"reset cannot be seeded ({describe_error(error)}): it must accept reset(seed=...) and draw all "
            "that is random from that seed (call super().reset(seed=seed) and use self.np_random)."
        )
        return False
    except Exception as error:
        found.problem(f"reset raised {describe_error(error)}.")
        return False
    if not isinstance(result, tuple) or len(result) != 2:
        found.problem("reset returns no pair: it must return (observation, info).")
        return False
    _observation(env.observation_space, result[0], "reset", found)
    return True


def _observation(space: spaces.Box, obs: Any, where: str, found: Findings) -> None:
    array = np.asarray(obs)
    if array.shape != space.shape:
        found.problem(f"An observation of {where} has shape {array.shape}; the observation space says {space.shape}.")
    elif array.dtype != space.dtype:
        found.problem(
            f"Observations of {where} are {array.dtype}, but the observation space says {space.dtype}: return "
            f"obs.astype(np.{space.dtype})."
        )
    elif not np.isfinite(array).all():
        found.problem(f"An observation of {where} is not finite (entry {int(np.argmin(np.isfinite(array)))}).")
    elif not space.contains(array):
        outside = (array < space.low) | (array > space.high)
        entry = int(np.argmax(outside))
        found.problem(
            f"Observations of {where} lie outside the observation space (entry {entry}, bounds {space.low[entry]:g} to "
            f"{space.high[entry]:g}): widen the space or clip them."
        )


def _play(env: Any, max_steps: int, found: Findings) -> Played:
    """Take random actions until enough episodes have ended, or `max_steps` or SECONDS are reached."""
    played, length, begun = Played(), 0, time.monotonic()
    env.action_space.seed(SEED)
    while len(played.costs) < max_steps and len(played.lengths) < EPISODES and time.monotonic() - begun < SECONDS:
        step = _read(env.step(env.action_space.sample()), found)
        length += 1
        played.costs.append(step.cost)
        played.names |= dict.fromkeys(step.costs)
        _observation(env.observation_space, step.obs, "step", found)
        if not np.isfinite(step.reward):
            found.problem("A reward is not finite.")
        if step.terminated or step.truncated:
            played.lengths.append(length)
            played.truncations += step.truncated
            length = 0
            env.reset(seed=SEED + len(played.lengths))
    return played


def _read(result: Any, found: Findings) -> EnvStep:
    """Read a step; a cost that is missing, negative or of several entries is reported and replaced by 0, so that checks
    go on."""
    try:
        return read_step(result)
    except UsageError as error:
        if not isinstance(result, tuple) or len(result) not in (5, 6):
            raise
        sentence = str(error).removeprefix("env: ")
        found.problem(sentence[:1].upper() + sentence[1:])
        return read_step((*result[:4], {"cost": 0.0}) if len(result) == 5 else (*result[:2], 0.0, *result[3:]))


def _costs(played: Played, found: Findings) -> None:
    costs = np.array(played.costs)
    if played.names:
        found.notes.append(f"Costs with names, each of which can have its own limit: {', '.join(played.names)}.")
    if not np.isfinite(costs).all():
        found.problem("A cost is not finite.")
    elif not costs.any() and not found.problems:
        found.notes.append(f"None of {len(costs):,} random steps cost anything; the limit only matters if some do.")


def _episodes(env: Any, played: Played, found: Findings) -> None:
    """A time limit must be reported as truncation, or values are learned as if nothing followed."""
    limit, lengths = time_limit(env), played.lengths
    if played.truncations:
        return
    if len(lengths) == EPISODES and len(set(lengths)) == 1 and lengths[0] > 1 and lengths[0] != limit:
        found.problem(
            f"Truncation is never reported, though all episodes end after {lengths[0]} steps: report a time limit as "
            "truncated=True and leave terminated=False, or use gymnasium.wrappers.TimeLimit."
        )
    elif limit is None:
        ended = "no episode ended" if not lengths else "episodes ended by termination only"
        found.problem(
            f"Truncation is never reported: in {len(played.costs):,} steps {ended}, and there is no time limit. "
            "Wrap the environment in gymnasium.wrappers.TimeLimit(env, steps)."
        )


def _repeats(copy: Any, env: Any, found: Findings) -> None:
    """The same seed and actions must lead to the same episode, in this copy and in another: runs resume by replay."""
    env.action_space.seed(SEED)
    actions = [env.action_space.sample() for _ in range(REPEATED)]
    first = _episode(env, actions)
    for other, which in ((env, "when it is played again"), (copy, "in another copy of the environment")):
        again = _episode(other, actions)
        if len(first) != len(again) or not all(map(np.array_equal, first, again)):
            found.problem(
                f"The same seed and actions lead elsewhere {which}: draw all that is random from reset's seed "
                "(self.np_random after super().reset(seed=seed)), and carry nothing over from one episode to the next."
            )
            return


def _episode(env: Any, actions: list[Any]) -> list[np.ndarray]:
    """Observations and results of an episode, up to its end or that of the actions."""
    seen = [np.asarray(env.reset(seed=SEED)[0])]
    for action in actions:
        step = read_step(env.step(action))
        numbers = step.reward, step.cost, step.terminated, step.truncated, *step.costs.values()
        seen += [np.asarray(step.obs).copy(), np.nan_to_num(numbers)]  # NaN: a named cost that is no number
        if step.terminated or step.truncated:
            break
    return seen
