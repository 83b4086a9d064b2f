"""Sampling under the current policy: line 2 of Algorithm 1.

Episodes go on across iterations; an iteration cuts them without ending them. Only the actor runs at every
step; values and probabilities are computed afterwards, in one batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.policy import Policy
from flashbulb.envs import CostVectorEnv
from flashbulb.errors import RunError, UsageError
from flashbulb.normaliser import FrozenNormaliser


class Batch(NamedTuple):
    """A batch of transitions, (time, member, ...), and the episodes that finished in it."""

    observations: np.ndarray
    next_observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray
    finished: FinishedEpisodes


class FinishedEpisodes(NamedTuple):
    step: np.ndarray  # vector step within the batch at which each ended
    member: np.ndarray
    returns: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray


class RunningEpisodes(NamedTuple):
    """Everything between two iterations that the environment does not keep itself."""

    observations: np.ndarray
    returns: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray

    @classmethod
    def start(cls, observations: np.ndarray) -> RunningEpisodes:
        zeros = np.zeros(len(observations))
        return cls(observations.astype(np.float32), zeros, zeros.copy(), np.zeros(len(observations), np.int64))


def collect(
    env: CostVectorEnv,
    policy: Policy,
    params: Any,
    normalise: FrozenNormaliser,
    noise: np.ndarray,
    running: RunningEpisodes,
) -> tuple[Batch, RunningEpisodes]:
    """Take `len(noise)` vector steps."""
    horizon, members = len(noise), env.num_envs
    size = running.observations.shape[1]
    observations = np.empty((horizon + 1, members, size), np.float32)
    finals: list[tuple[int, np.ndarray, np.ndarray]] = []
    actions: list[np.ndarray] = []
    rewards = np.empty((horizon, members), np.float32)
    costs = np.empty((horizon, members), np.float32)
    terminated = np.empty((horizon, members), bool)
    truncated = np.empty((horizon, members), bool)

    observations[0] = running.observations
    for t in range(horizon):
        if not np.isfinite(observations[t]).all():  # before a policy turns it into an action
            _refuse_not_finite(env, observations=observations[: t + 1])
        action = policy.act(params, normalise(observations[t]), noise[t])
        actions.append(action)
        obs, rewards[t], cost, terminated[t], truncated[t], info = env.step(policy.to_env(action))
        if np.shape(cost) != (members,):
            raise UsageError(
                f"env: {env.env_id} returns costs of shape {np.shape(cost)}; it must be {(members,)}, one constraint "
                "(add several up, or train with the one that matters)."
            )
        observations[t + 1], costs[t] = obs, cost
        if info["_final_obs"].any():
            rows = np.flatnonzero(info["_final_obs"])
            finals.append((t, rows, np.asarray(info["final_obs"])[rows]))

    next_observations = observations[1:].copy()
    for t, rows, final in finals:
        next_observations[t, rows] = final
    ended = terminated | truncated
    _refuse_not_finite(env, rewards=rewards, costs=costs, observations=next_observations)
    finished, running = account(rewards, costs, ended, running)
    batch = Batch(observations[:-1], next_observations, np.stack(actions), rewards, costs, terminated, ended, finished)
    return batch, running._replace(observations=observations[-1].copy())


def account(
    rewards: np.ndarray, costs: np.ndarray, ended: np.ndarray, running: RunningEpisodes
) -> tuple[FinishedEpisodes, RunningEpisodes]:
    """Return, cost and length of the episodes that ended, and the running sums of those that did not."""
    rows = []
    sums = [running.returns.copy(), running.costs.copy(), running.lengths.copy()]
    for member in range(rewards.shape[1]):
        start = 0
        for end in (np.flatnonzero(ended[:, member]) + 1).tolist():
            part = slice(start, end)
            rows.append(
                (
                    end - 1,
                    member,
                    sums[0][member] + rewards[part, member].sum(dtype=np.float64),
                    sums[1][member] + costs[part, member].sum(dtype=np.float64),
                    sums[2][member] + end - start,
                )
            )
            for total in sums:
                total[member] = 0
            start = end
        rest = slice(start, None)
        sums[0][member] += rewards[rest, member].sum(dtype=np.float64)
        sums[1][member] += costs[rest, member].sum(dtype=np.float64)
        sums[2][member] += len(rewards) - start
    table = np.array(sorted(rows), dtype=np.float64).reshape(-1, 5)
    finished = FinishedEpisodes(
        table[:, 0].astype(np.int64),
        table[:, 1].astype(np.int64),
        table[:, 2],
        table[:, 3],
        table[:, 4].astype(np.int64),
    )
    return finished, RunningEpisodes(running.observations, *sums)


def _refuse_not_finite(env: CostVectorEnv, **arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            step, member = np.argwhere(~np.isfinite(array))[0][:2]
            raise RunError(
                f"{env.env_id} returned {name} that are not finite (step {step} of the batch, member {member})."
            )
