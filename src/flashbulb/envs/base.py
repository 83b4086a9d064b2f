"""The environment contract: a batch of constrained MDPs that is stepped as one.

Every task steps `num_envs` environments at once. Arrays have one row per environment; costs stand beside rewards as in
Safety-Gymnasium's six-tuple. Autoreset happens within the step: when an episode ends, `obs` is already the first
observation of the next episode, and the last observation of the old one is in `info["final_obs"]` where
`info["_final_obs"]` is true.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from flashbulb.errors import UsageError

# A snapshot is a flat dictionary of arrays whose first axis runs over environments. It can be sliced by environment,
# written to any array format, and loaded without executing code.
State = dict[str, np.ndarray]
Info = dict[str, Any]
LidarGroups = tuple[tuple[int, int], ...]  # (first, end) of observation entries that shift around as the agent turns
StepResult = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]


@runtime_checkable
class CostVectorEnv(Protocol):
    """A batch of constrained Markov decision processes.

    An environment with several costs also has `cost_names`, and in `info["costs"]` of each step an array for each name;
    the cost that it returns is their total, for users who give one limit (`envs/named_costs.py`).
    """

    env_id: str
    num_envs: int
    max_episode_steps: int
    single_observation_space: spaces.Space
    single_action_space: spaces.Space

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        """Start a new episode in every environment. A seed `s` gives environment `i` the generator of seed `s + i`;
        without a seed the generators continue from their current states."""
        ...

    def step(self, actions: np.ndarray) -> StepResult:
        """Clip the actions to their bounds, advance, and reset the environments whose episode ended.

        Returns `(obs, reward, cost, terminated, truncated, info)`.
        """
        ...

    def get_state(self, indices: np.ndarray | None = None) -> State:
        """Copy everything that determines the future of these environments (default: all): physics, layout, timers,
        random generators."""
        ...

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        """Load `state` into these environments (default: all, in order). The number of rows must match; the snapshot
        may come from another batch of the same task, of any size and number of threads."""
        ...

    def observe(self) -> np.ndarray:
        """The current observations, for example after `set_state`."""
        ...

    def close(self) -> None:
        """Release threads and processes."""
        ...


def env_rows(indices: np.ndarray | None, num_envs: int) -> np.ndarray:
    """The chosen environments as an array of row numbers; None chooses all."""
    return np.arange(num_envs)[slice(None) if indices is None else indices].reshape(-1)


def checked_actions(space: spaces.Space, actions: Any, num_envs: int) -> np.ndarray:
    """A copy of the actions in float64 and C order; refused if the shape is wrong or an entry is NaN.

    Bounds are left to the task, which clips in its own arithmetic.
    """
    given = np.array(actions, dtype=np.float64, order="C")
    wanted = (num_envs, *(space.shape or ()))
    if given.shape != wanted:
        raise UsageError(f"actions: shape {given.shape} is not allowed; it must be {wanted}.")
    flat = given.reshape(-1)
    if math.isnan(np.dot(flat, flat)):  # a sum of squares is NaN only if an entry is; cheaper than np.isnan(...).any()
        raise UsageError("actions: NaN is not allowed; every entry must be a number.")
    return given


def lidar_groups_of(env: CostVectorEnv) -> LidarGroups:
    """The (first, end) observation entries of each lidar; empty for environments that name none."""
    found: LidarGroups = getattr(env, "lidar_groups", ())
    return found


def final_info(obs: np.ndarray, ended: np.ndarray) -> Info:
    """The entries of `info` that a same-step autoreset returns."""
    return {"final_obs": obs, "_final_obs": ended}


CLOCKS = ("elapsed", "steps")  # names in snapshots of the steps since an episode began


def clock_of(state: State) -> str | None:
    """The entry of a snapshot that counts the steps of an episode, if it has one."""
    return next((name for name in CLOCKS if name in state), None)


def stagger_episodes(env: CostVectorEnv) -> bool:
    """Set the environments' clocks evenly over an episode, as if they had begun one after the other.

    Returns False, and changes nothing, if the environment's snapshot has no clock.
    """
    state = env.get_state()
    clock = clock_of(state)
    if clock is None:
        return False
    spread = np.arange(env.num_envs) * env.max_episode_steps // env.num_envs
    env.set_state(state | {clock: spread.astype(state[clock].dtype)})
    return True
