"""A batch whose step returns several costs, those that have a limit of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flashbulb.envs.base import CostVectorEnv, Info, State, StepResult, lidar_groups_of
from flashbulb.errors import UsageError


class NamedCosts:
    """Returns as cost the entries of `info["costs"]` with these names, (num_envs, K), in their order.

    Names that the environment does not have are refused here. One that does not state its `cost_names` is reset and
    stepped once to find out: whoever uses it resets it or sets its state afterwards.
    """

    def __init__(self, env: CostVectorEnv, names: Sequence[str]) -> None:
        self.env, self.cost_names = env, tuple(names)
        self.env_id, self.num_envs, self.max_episode_steps = env.env_id, env.num_envs, env.max_episode_steps
        self.single_action_space, self.lidar_groups = env.single_action_space, lidar_groups_of(env)
        self.single_observation_space = env.single_observation_space
        offered = getattr(env, "cost_names", None)
        if offered is None:
            offered = _costs_of_a_step(env)
        unknown = [name for name in self.cost_names if name not in offered]
        if unknown and offered:
            has = f"{env.env_id} has {', '.join(offered)}"
            raise UsageError(f"cost_limit: there is no cost {unknown[0]!r}; {has}.")
        if unknown:
            raise UsageError(
                f"cost_limit: {env.env_id} reports one cost without a name; give one number as the limit, or report "
                'named costs in info["costs"].'
            )

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        return self.env.reset(seed)

    def step(self, actions: np.ndarray) -> StepResult:
        obs, reward, _, terminated, truncated, info = self.env.step(actions)
        costs, cost = info.get("costs", {}), np.full((self.num_envs, len(self.cost_names)), np.nan)
        for k, name in enumerate(self.cost_names):
            if np.shape(costs.get(name)) == (self.num_envs,):
                cost[:, k] = costs[name]
        if np.isnan(cost).any():
            name = self.cost_names[int(np.isnan(cost).any(axis=0).argmax())]
            raise UsageError(
                f'env: a step of {self.env_id} reports no number for the cost {name!r}; info["costs"] must have one in '
                "every step, 0 where it is safe."
            )
        return obs, reward, cost, terminated, truncated, info

    def get_state(self, indices: np.ndarray | None = None) -> State:
        return self.env.get_state(indices)

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        self.env.set_state(state, indices)

    def observe(self) -> np.ndarray:
        return self.env.observe()

    def close(self) -> None:
        self.env.close()


def with_named_costs(env: CostVectorEnv, names: Sequence[str]) -> CostVectorEnv:
    """The environment with these costs, closed if it does not have them; as it is if there are no names."""
    if not names:
        return env
    try:
        return NamedCosts(env, names)
    except BaseException:
        env.close()
        raise


def cost_axis(env: CostVectorEnv) -> tuple[int, ...]:
    """The shape of an environment's cost beyond (num_envs,): (K,) with named costs."""
    return (len(env.cost_names),) if isinstance(env, NamedCosts) else ()


def _costs_of_a_step(env: CostVectorEnv) -> list[str]:
    """The names in `info["costs"]` of a first step."""
    env.reset(seed=0)
    env.single_action_space.seed(0)
    actions: Any = np.stack([env.single_action_space.sample() for _ in range(env.num_envs)])
    costs = env.step(actions)[5].get("costs", {})
    return list(costs) if isinstance(costs, Mapping) else []
