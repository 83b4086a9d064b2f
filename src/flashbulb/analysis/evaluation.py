"""Evaluation of a trained policy: new episodes with a frozen normaliser, on seeds that training does not use."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.registry import algorithm_of
from flashbulb.analysis.rollout import rollout
from flashbulb.analysis.statistics import MeanInterval, mean_interval
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.cost_limits import CostLimit, leading_column, leading_cost
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.named_costs import cost_axis
from flashbulb.envs.trusted_env import require_trusted
from flashbulb.errors import RunError

SEED_OFFSET = 2**31  # training and evaluation seeds lie in different halves of the 32-bit numbers
MAX_LENGTH_FACTOR = 100  # times max_episode_steps, which is an assumption for a user's environment without a time limit


class EpisodeResults(NamedTuple):
    """A row per episode."""

    returns: np.ndarray
    costs: np.ndarray  # (episodes,), or (episodes, K) of several costs
    lengths: np.ndarray


def evaluation_seed(seed: int) -> int:
    """Environment `i` of training has seed + i; the other half of the seeds is free of them."""
    return (seed + SEED_OFFSET) % (2 * SEED_OFFSET)


def evaluation_env(policy: TrainedPolicy, num_envs: int) -> CostVectorEnv:
    """The task as the algorithm's agent sees it, with the cost budget of the end of training."""
    config = policy.config
    require_trusted(config.env, policy.trusted_env)
    config = dataclasses.replace(config, num_envs=num_envs, seed=evaluation_seed(config.seed))
    env = make_training_env(algorithm_of(config), config, evaluating=True)
    if isinstance(env, BudgetWrapper) and policy.budget is not None:
        env.set_budget(policy.budget)
    return env


def run_episodes(env: CostVectorEnv, policy: TrainedPolicy, episodes: int, deterministic: bool) -> EpisodeResults:
    """The first episodes of every environment, exactly `episodes` in all.

    How many an environment contributes is fixed beforehand. Taking whichever finish first would favour short ones.
    """
    seed = evaluation_seed(policy.config.seed)
    policy.rng = np.random.default_rng([seed, 2])
    quota = np.full(env.num_envs, episodes // env.num_envs)
    quota[: episodes % env.num_envs] += 1
    finished: list[list[np.ndarray]] = [[] for _ in quota]
    axis = cost_axis(env)
    sums = np.zeros((env.num_envs, 2 + math.prod(axis)))  # length, return, costs
    for step in rollout(env, lambda obs, _: policy.predict(obs, deterministic), env.reset(seed=seed)[0]):
        sums += np.c_[np.ones(env.num_envs), step.rewards, step.costs]
        longest = sums[:, 0].max()
        if longest > MAX_LENGTH_FACTOR * env.max_episode_steps:
            raise RunError(f"no episode of {env.env_id} ended in {longest:,.0f} steps; give it a time limit.")
        for i in np.flatnonzero(step.ended):
            if len(finished[i]) < quota[i]:
                finished[i].append(sums[i].copy())
            sums[i] = 0
        if all(len(own) == wanted for own, wanted in zip(finished, quota, strict=True)):
            break
    rows = np.array([episode for own in finished for episode in own]).reshape(-1, sums.shape[1])
    return EpisodeResults(rows[:, 1], rows[:, 2:].reshape(-1, *axis), rows[:, 0])


def episode_statistics(episodes: EpisodeResults, cost_limit: CostLimit) -> dict[str, MeanInterval]:
    """Return, cost, length and the share of episodes over the limit.

    Of several costs `cost` is the one whose mean has the largest excess relative to its limit, and the share is that of
    episodes over any limit; both are there for each as well, as `cost_NAME` and `share_over_limit_NAME`.
    """
    found = {
        "return": mean_interval(episodes.returns),
        "cost": mean_interval(leading_column(episodes.costs, cost_limit)),
        "length": mean_interval(episodes.lengths),
        "share_over_limit": mean_interval(_over(*leading_cost(episodes.costs, cost_limit))),
    }
    if isinstance(cost_limit, dict):
        for (name, limit), costs in zip(cost_limit.items(), episodes.costs.T, strict=True):
            found[f"cost_{name}"] = mean_interval(costs)
            found[f"share_over_limit_{name}"] = mean_interval(_over(costs, limit))
    return found


def _over(costs: np.ndarray, limit: Any) -> np.ndarray:
    return (costs > limit).astype(np.float64)


def evaluate(policy: TrainedPolicy, episodes: int, modes: tuple[str, ...]) -> dict[str, dict[str, MeanInterval]]:
    """Statistics by mode, "deterministic" and "stochastic", both on the same seeds."""
    env = evaluation_env(policy, min(policy.config.num_envs, episodes))
    try:
        limit = policy.config.cost_limit
        return {
            mode: episode_statistics(run_episodes(env, policy, episodes, mode == "deterministic"), limit)
            for mode in modes
        }
    finally:
        env.close()
