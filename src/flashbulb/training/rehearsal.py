"""A cold start on two cores: while the task is compiled, the learner is as well.

XLA compiles without Python's lock, so a thread rehearses one iteration with an environment that stands still; what it
learns is thrown away. The learner's Numba functions are compiled by a helper process meanwhile (`kernel_cache.py`).
Both only where Numba's cache is empty: otherwise there is nothing to gain.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np

from flashbulb.algorithms.critic_fit import _descend
from flashbulb.algorithms.registry import ALGORITHMS
from flashbulb.config import Config
from flashbulb.cores import thread_count, usable_cores
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.base import Info, State, StepResult, final_info, lidar_groups_of
from flashbulb.envs.named_costs import NamedCosts
from flashbulb.kernel_cache import is_cached, start_helper
from flashbulb.training.iteration import RunParts, iterate
from flashbulb.training.train_state import start


def start_compiling(config: Config) -> bool:
    """Start the helper process where that helps; returns whether it does."""
    cores = min(thread_count(config.threads), len(usable_cores()))
    if cores < 2 or config.critic.backend != "compiled" or is_cached(_descend):
        return False
    start_helper("flashbulb.training.compile_kernels", str(len(config.critic.hidden)))
    return True


class StillEnv:
    """A batch with the spaces of another, in which nothing happens."""

    def __init__(self, env: CostVectorEnv) -> None:
        self.env_id, self.num_envs, self.max_episode_steps = env.env_id, env.num_envs, env.max_episode_steps
        self.single_observation_space, self.single_action_space = env.single_observation_space, env.single_action_space
        self.lidar_groups, self.cost_names = lidar_groups_of(env), getattr(env, "cost_names", ())

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        return self.observe(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        never, nothing, obs = np.zeros(self.num_envs, bool), np.zeros(self.num_envs), self.observe()
        info = final_info(obs, never) | {"costs": dict.fromkeys(self.cost_names, nothing)}
        return obs, nothing, nothing, never, never, info

    def get_state(self, indices: np.ndarray | None = None) -> State:
        return {}

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        return

    def observe(self) -> np.ndarray:
        return np.zeros((self.num_envs, *(self.single_observation_space.shape or ())))

    def close(self) -> None:
        return


def rehearse(config: Config, parts: RunParts) -> None:
    """One iteration without consequences. Whatever goes wrong in it goes wrong again in the run, and is told there."""
    with contextlib.suppress(Exception):
        still: Any = StillEnv(parts.env)
        if isinstance(parts.env, NamedCosts):
            still = NamedCosts(still, still.cost_names)
        iterate(config, parts._replace(env=still, ready=None), start(still, parts.learner, config))


def start_rehearsal(config: Config, parts: RunParts) -> RunParts:
    """Parts of which the first iteration waits for the rehearsal before it learns."""
    if config.algorithm not in ALGORITHMS or config.plugins:
        return parts  # the parts of others may keep count of their calls
    thread = threading.Thread(target=rehearse, args=(config, parts), name="flashbulb-rehearsal")
    thread.start()
    return parts._replace(ready=thread.join)
