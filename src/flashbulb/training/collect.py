"""Sampling under the current policy: line 2 of Algorithm 1.

Episodes go on across iterations; an iteration cuts them without ending them. Only the actor runs at every
step; values and probabilities are computed afterwards, in one batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.policy import Policy
from flashbulb.batch import Batch, FinishedEpisodes
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.named_costs import cost_axis
from flashbulb.errors import RunError, UsageError
from flashbulb.normaliser import FrozenNormaliser
from flashbulb.training.batch_means import RunningEpisodes, cost_error, episode_means, mean_length, step_means


class Sampler(NamedTuple):
    """A frozen policy: parameters on the host, and the normaliser it sees observations through."""

    policy: Policy
    params: Any
    normalise: FrozenNormaliser


def collect(
    env: CostVectorEnv,
    sampler: Sampler,
    noise: np.ndarray,
    running: RunningEpisodes,
    iteration: int,
    cost_estimate: str = "episodes",
) -> tuple[Batch, RunningEpisodes]:
    """Take `len(noise)` vector steps."""
    policy, params, normalise = sampler
    horizon, num_envs = len(noise), env.num_envs
    size = running.observations.shape[1]
    observations = np.empty((horizon + 1, num_envs, size), np.float32)
    finals: list[tuple[int, np.ndarray, np.ndarray]] = []
    actions: list[np.ndarray] = []
    rewards = np.empty((horizon, num_envs), np.float32)
    costs = np.empty((horizon, num_envs, *cost_axis(env)), np.float32)
    terminated = np.empty((horizon, num_envs), bool)
    truncated = np.empty((horizon, num_envs), bool)

    observations[0] = running.observations
    for t in range(horizon):
        if not np.isfinite(observations[t]).all():  # before a policy turns it into an action
            _require_finite(env, observations=observations[: t + 1])
        action = policy.act(params, normalise(observations[t]), noise[t])
        actions.append(action)
        obs, rewards[t], cost, terminated[t], truncated[t], info = env.step(policy.to_env(action))
        if np.shape(cost) != costs.shape[1:]:
            raise UsageError(
                f"env: {env.env_id} returns costs of shape {np.shape(cost)}; it must be {costs.shape[1:]}, one "
                'constraint (several have names, in info["costs"], and a limit each).'
            )
        observations[t + 1], costs[t] = obs, cost
        if info["_final_obs"].any():
            rows = np.flatnonzero(info["_final_obs"])
            finals.append((t, rows, np.asarray(info["final_obs"])[rows]))

    next_observations = observations[1:].copy()
    for t, rows, final in finals:
        next_observations[t, rows] = final
    ended = terminated | truncated
    _require_finite(env, rewards=rewards, costs=costs, observations=next_observations)
    _require_no_negative(env, costs)
    lengths = running.lengths
    episodes, running = account(rewards, costs, ended, running)
    running = running._replace(observations=observations[-1].copy())
    samples = observations[:-1], next_observations, np.stack(actions), rewards, costs, terminated, ended
    batch = Batch(iteration, *samples, normalise, episodes=episodes)
    length = mean_length(batch, lengths, env.max_episode_steps)
    if cost_estimate == "steps":
        means = step_means(batch, length)
    else:
        means = episode_means(episodes, running, env.max_episode_steps)
    return batch._replace(means=means._replace(cost_error=cost_error(batch, length))), running


def account(
    rewards: np.ndarray, costs: np.ndarray, ended: np.ndarray, running: RunningEpisodes
) -> tuple[FinishedEpisodes, RunningEpisodes]:
    """Return, cost and length of the episodes that ended, and the running sums of those that did not."""
    rows = []
    sums = [running.returns.copy(), running.costs.copy(), running.lengths.copy()]
    for env in range(rewards.shape[1]):
        start = 0
        for end in (np.flatnonzero(ended[:, env]) + 1).tolist():
            part = slice(start, end)
            returns = sums[0][env] + rewards[part, env].sum(dtype=np.float64)
            cost = sums[1][env] + costs[part, env].sum(axis=0, dtype=np.float64)
            rows.append((end - 1, env, returns, sums[2][env] + end - start, cost))
            for total in sums:
                total[env] = 0
            start = end
        rest = slice(start, None)
        sums[0][env] += rewards[rest, env].sum(dtype=np.float64)
        sums[1][env] += costs[rest, env].sum(axis=0, dtype=np.float64)
        sums[2][env] += len(rewards) - start
    rows.sort(key=lambda row: row[:2])
    table = np.array([row[:4] for row in rows], dtype=np.float64).reshape(-1, 4)
    step, env_index, length = (table[:, column].astype(np.int64) for column in (0, 1, 3))
    paid = np.array([row[4] for row in rows], dtype=np.float64).reshape(-1, *costs.shape[2:])
    episodes = FinishedEpisodes(step, env_index, table[:, 2], paid, length)
    return episodes, RunningEpisodes(running.observations, *sums)


def _require_no_negative(env: CostVectorEnv, costs: np.ndarray) -> None:
    """A negative cost would pay for an unsafe step elsewhere."""
    if (costs < 0).any():
        step, index = np.argwhere(costs < 0)[0][:2]
        cost = costs[step, index].min()
        raise RunError(
            f"{env.env_id} returned a cost of {cost:g} (step {step} of the batch, environment {index}); costs count "
            "what is unsafe and start at 0."
        )


def _require_finite(env: CostVectorEnv, **arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            step, index = np.argwhere(~np.isfinite(array))[0][:2]
            raise RunError(
                f"{env.env_id} returned {name} that are not finite (step {step} of the batch, environment {index})."
            )
