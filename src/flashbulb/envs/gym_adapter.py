"""A Gymnasium environment of the user as a batch of ours.

An environment object of the user cannot be written to a checkpoint without executing code when it is loaded. A snapshot
of a `GymAdapter` therefore holds the seed of each episode and the actions since its start. `set_state` replays them and
compares the observation at the end, so an environment that is not a function of its seed is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import Info, State, StepResult, checked_actions, env_rows, final_info
from flashbulb.envs.env_pool import EnvPool
from flashbulb.envs.gym_single import PoolStep
from flashbulb.errors import RunError, UsageError

LONGEST_EPISODE = 100_000  # a checkpoint has all actions of an episode, and going on replays them
STATE_FIELDS = ("seed", "episode", "length", "actions", "observation")


def episode_seed(seed: int, episode: int) -> int:
    """The seed of one episode, so that it can be repeated without the episodes before it."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)  # 31 bits: any library takes them


class GymAdapter:
    """A batch of copies of one Gymnasium environment; see `flashbulb.envs.base.CostVectorEnv`."""

    def __init__(self, env_id: str, pool: EnvPool, num_envs: int, seed: int) -> None:
        self.env_id, self.num_envs, self._pool = env_id, num_envs, pool
        self.single_observation_space, self.single_action_space, self.max_episode_steps, self.lidar_groups = pool.info
        self._seed = np.arange(seed, seed + num_envs, dtype=np.int64)
        self._episode = np.full(num_envs, -1, np.int64)  # -1 before the first reset
        self._next_seed = np.zeros(num_envs, np.int64)  # of the episode after the current one
        self._history: list[list[np.ndarray]] = [[] for _ in range(num_envs)]  # actions of the current episode
        space = self.single_observation_space
        self._obs = np.zeros((num_envs, *_shape(space)), space.dtype)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._seed, self._episode[:] = np.arange(seed, seed + self.num_envs, dtype=np.int64), -1
        rows = env_rows(None, self.num_envs)
        self._start_episodes(rows)
        no_actions = [np.zeros((0, *self._action_shape)) for _ in rows]
        self._obs = self._pool.replay(rows, self._episode_seeds(rows), no_actions)
        return self._obs.copy(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        if (self._episode < 0).any():
            raise UsageError("step: the batch has not begun; call reset or set_state first.")
        actions = self._clipped(actions)
        result: PoolStep = self._pool.step(actions, self._next_seed)
        for history, action in zip(self._history, actions, strict=True):
            history.append(action)
        ended = result.terminated | result.truncated
        self._start_episodes(np.flatnonzero(ended))
        if max(map(len, self._history)) > LONGEST_EPISODE:
            wrap = "wrap it in gymnasium.wrappers.TimeLimit(env, steps)"
            raise RunError(f"an episode of {self.env_id} has not ended after {LONGEST_EPISODE:,} steps; {wrap}.")
        self._obs = result.obs
        info = final_info(result.final_obs, ended) | ({"costs": result.costs} if result.costs else {})
        return result.obs.copy(), result.reward, result.cost, result.terminated, result.truncated, info

    def observe(self) -> np.ndarray:
        return self._obs.copy()

    def get_state(self, indices: np.ndarray | None = None) -> State:
        rows = env_rows(indices, self.num_envs)
        length = np.array([len(self._history[i]) for i in rows], np.int64)
        actions = np.zeros((len(rows), int(length.max(initial=0)), *self._action_shape), self.single_action_space.dtype)
        for row, i in enumerate(rows):
            if self._history[i]:
                actions[row, : length[row]] = self._history[i]
        return {
            "seed": self._seed[rows],
            "episode": self._episode[rows],
            "length": length,
            "actions": actions,
            "observation": self._obs[rows],
        }

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        rows = env_rows(indices, self.num_envs)
        self._check_state(state, len(rows))
        self._seed[rows], self._episode[rows] = state["seed"], state["episode"]
        begun = np.flatnonzero(np.asarray(state["episode"]) >= 0)  # rows of `state` with an episode to replay
        histories = [np.asarray(state["actions"][k][: state["length"][k]]) for k in begun]
        for k, history in zip(begun, histories, strict=True):
            self._history[rows[k]] = list(history)
        self._next_seed[rows] = self._episode_seeds(rows, ahead=1)
        if len(begun):
            obs = self._pool.replay(rows[begun], self._episode_seeds(rows[begun]), histories)
            self._check_replay(obs, np.asarray(state["observation"])[begun], rows[begun])
        self._obs[rows] = state["observation"]

    def close(self) -> None:
        self._pool.close()

    def _start_episodes(self, rows: np.ndarray) -> None:
        self._episode[rows] += 1
        self._next_seed[rows] = self._episode_seeds(rows, ahead=1)
        for i in rows:
            self._history[i] = []

    def _episode_seeds(self, rows: np.ndarray, ahead: int = 0) -> np.ndarray:
        pairs = zip(self._seed[rows].tolist(), (self._episode[rows] + ahead).tolist(), strict=True)
        return np.array([episode_seed(seed, episode) for seed, episode in pairs], np.int64)

    @property
    def _action_shape(self) -> tuple[int, ...]:
        return _shape(self.single_action_space)

    def _clipped(self, actions: Any) -> np.ndarray:
        space = self.single_action_space
        actions = checked_actions(space, actions, self.num_envs)
        if isinstance(space, spaces.Box):
            return np.clip(actions, space.low, space.high).astype(space.dtype)
        assert isinstance(space, spaces.Discrete)
        return np.clip(actions, space.start, space.start + space.n - 1).astype(space.dtype)

    def _check_state(self, state: State, rows: int) -> None:
        if sorted(state) != sorted(STATE_FIELDS):
            raise UsageError(f"state: entries {sorted(state)} are not allowed; they must be {sorted(STATE_FIELDS)}.")
        for name in STATE_FIELDS:
            if len(state[name]) != rows:
                raise UsageError(f"state: {len(state[name])} rows of {name!r} are not allowed; it must have {rows}.")

    def _check_replay(self, replayed: np.ndarray, recorded: np.ndarray, rows: np.ndarray) -> None:
        for i, ours, theirs in zip(rows, replayed, recorded, strict=True):
            if not np.array_equal(ours, theirs, equal_nan=True):
                raise RunError(
                    f"{self.env_id} did not repeat itself: the same seed and actions led environment {i} to another "
                    f"observation, so the run cannot be resumed exactly (see `flashbulb check {self.env_id}`)."
                )


def _shape(space: spaces.Space) -> tuple[int, ...]:
    return tuple(space.shape or ())
