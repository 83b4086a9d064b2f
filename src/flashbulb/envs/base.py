"""The one interface between an agent and what it lives in: a batch of constrained MDPs.

Every task steps `num_envs` members at once. Arrays have one row per member; costs stand beside rewards as
in Safety-Gymnasium's six-tuple. Autoreset happens within the step: when a member's episode ends, `obs`
already is the first observation of its next episode, and the last observation of the old one is in
`info["final_obs"]` where `info["_final_obs"]` is true.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

# A snapshot is a flat dictionary of arrays whose first axis runs over members. Nothing else: so it can be
# sliced by member, written to any array format, and loaded without executing code.
State = dict[str, np.ndarray]
Info = dict[str, Any]
LidarGroups = tuple[tuple[int, int], ...]  # entries of an observation that shift around as the agent turns
StepResult = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]


@runtime_checkable
class CostVectorEnv(Protocol):
    """A batch of constrained Markov decision processes."""

    env_id: str
    num_envs: int
    max_episode_steps: int
    single_observation_space: spaces.Space
    single_action_space: spaces.Space

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        """Start a new episode everywhere. A seed `s` gives member `i` the generator of seed `s + i`;
        without one the generators go on where they are."""
        ...

    def step(self, actions: np.ndarray) -> StepResult:
        """Clip the actions to their bounds, advance, and reset the members whose episode ended.

        Returns `(obs, reward, cost, terminated, truncated, info)`.
        """
        ...

    def get_state(self, members: np.ndarray | None = None) -> State:
        """Copy all that decides the future of the members (default: of all): physics, layout, timers,
        random generators."""
        ...

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        """Put `state` into the members (default: into all, in order). The number of rows must match; the
        snapshot may come from another batch of the same task, of any size and number of threads."""
        ...

    def observe(self) -> np.ndarray:
        """The members' current observations, for example after `set_state`."""
        ...

    def close(self) -> None: ...


def lidar_groups_of(env: CostVectorEnv) -> LidarGroups:
    """Where the observation has readings around the agent, as (first, end); most environments have none to name."""
    found: LidarGroups = getattr(env, "rings", ())
    return found


def final_info(obs: np.ndarray, ended: np.ndarray) -> Info:
    """The part of `info` that a same-step autoreset owes its caller."""
    return {"final_obs": obs, "_final_obs": ended}
