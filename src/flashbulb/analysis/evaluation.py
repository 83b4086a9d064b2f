"""How good a policy is: fresh episodes, frozen normaliser, seeds that training never saw."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import bootstrap

from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.registry import get_algorithm
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.errors import RunError

HALF = 2**31  # training and evaluation seeds lie in different halves of the 32-bit numbers
CONFIDENCE = 0.95
RESAMPLES = 9_999
ENDLESS = 100  # times the longest episode, where a foreign environment leaves that to be assumed


class Episodes(NamedTuple):
    """A row per episode."""

    returns: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray


class Estimate(NamedTuple):
    """A mean and its bootstrap confidence interval; a single episode has none."""

    mean: float
    low: float | None
    high: float | None


def evaluation_seed(seed: int) -> int:
    """Member `i` of training has seed + i; the other half of the seeds is free of them."""
    return (seed + HALF) % (2 * HALF)


def evaluation_env(policy: TrainedPolicy, num_envs: int) -> CostVectorEnv:
    """The task as the algorithm's agent sees it, with the budget that it last trained with."""
    config = policy.config
    config = dataclasses.replace(config, num_envs=num_envs, seed=evaluation_seed(config.seed))
    env = make_training_env(get_algorithm(config.algorithm), config)
    if isinstance(env, BudgetWrapper) and policy.budget is not None:
        env.set_budget(policy.budget)
    return env


def play(env: CostVectorEnv, policy: TrainedPolicy, episodes: int, deterministic: bool) -> Episodes:
    """The first episodes of every member, exactly `episodes` in all.

    How many a member contributes is settled beforehand. Taking whichever finish first would favour short ones.
    """
    seed = evaluation_seed(policy.config.seed)
    policy.rng = np.random.default_rng([seed, 2])
    quota = np.full(env.num_envs, episodes // env.num_envs)
    quota[: episodes % env.num_envs] += 1
    played: list[list[tuple[float, float, int]]] = [[] for _ in quota]
    sums = np.zeros((3, env.num_envs))
    obs, _ = env.reset(seed=seed)
    while any(len(mine) < wanted for mine, wanted in zip(played, quota, strict=True)):
        obs, reward, cost, terminated, truncated, _ = env.step(policy.predict(obs, deterministic))
        sums += np.stack([reward, cost, np.ones(env.num_envs)])
        if sums[2].max() > ENDLESS * env.max_episode_steps:
            raise RunError(f"no episode of {env.env_id} ended in {sums[2].max():,.0f} steps; give it a time limit.")
        for i in np.flatnonzero(terminated | truncated):
            if len(played[i]) < quota[i]:
                played[i].append((sums[0, i], sums[1, i], int(sums[2, i])))
            sums[:, i] = 0
    rows = np.array([episode for mine in played for episode in mine], dtype=np.float64).reshape(-1, 3)
    return Episodes(rows[:, 0], rows[:, 1], rows[:, 2])


def summarise(episodes: Episodes, limit: float) -> dict[str, Estimate]:
    """Return, cost, length and the share of episodes over the limit."""
    return {
        "return": estimate(episodes.returns),
        "cost": estimate(episodes.costs),
        "length": estimate(episodes.lengths),
        "share_over_limit": estimate((episodes.costs > limit).astype(np.float64)),
    }


def estimate(values: np.ndarray) -> Estimate:
    """The mean with its percentile-bootstrap interval, the same each time."""
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, None, None)
    if np.ptp(values) == 0:
        return Estimate(mean, mean, mean)
    rng = np.random.default_rng(0)
    options: Any = {"confidence_level": CONFIDENCE, "n_resamples": RESAMPLES, "method": "percentile", "rng": rng}
    interval = bootstrap((values,), np.mean, **options).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high))


def evaluate(policy: TrainedPolicy, episodes: int, modes: tuple[str, ...]) -> dict[str, dict[str, Estimate]]:
    """Summaries by mode, "deterministic" and "stochastic"; both face the same seeds."""
    env = evaluation_env(policy, min(policy.config.num_envs, episodes))
    try:
        limit = policy.config.cost_limit
        return {mode: summarise(play(env, policy, episodes, mode == "deterministic"), limit) for mode in modes}
    finally:
        env.close()
