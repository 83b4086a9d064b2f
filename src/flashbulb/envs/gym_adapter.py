"""Anyone's Gymnasium environment behind the contract: `num_envs` copies in processes, threads or one after the other.

GymAdapter objects cannot be written to a checkpoint without trusting it with code. So a snapshot holds what led to the
present instead: the seed of each member's episode and the actions since. `set_state` replays them and compares the
observation at the end, so that an environment that is not a function of its seed is found out and not resumed wrongly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from flashbulb.envs.base import Info, State, StepResult, final_info
from flashbulb.envs.env_pool import EnvPool, Vectorise, start_pool
from flashbulb.envs.gym_single import Facts, Outcome
from flashbulb.errors import RunError, UsageError

ENTRIES = ("seed", "episode", "length", "actions", "observation")


def episode_seed(seed: int, episode: int) -> int:
    """Each episode is reset with a seed of its own, so that it can be repeated without those before it."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)  # 31 bits: any library takes them


class GymAdapter:
    """A batch of copies of one environment; see `flashbulb.envs.base.CostVectorEnv`."""

    def __init__(self, source: str, num_envs: int, seed: int, workers: int, vectorise: Vectorise) -> None:
        self.env_id, self.num_envs = source, num_envs
        self._crew: EnvPool = start_pool(vectorise, source, num_envs, workers)
        facts: Facts = self._crew.facts
        self.single_observation_space, self.single_action_space = facts.observations, facts.actions
        self.max_episode_steps = facts.max_episode_steps
        self._seed = np.arange(seed, seed + num_envs, dtype=np.int64)
        self._episode = np.full(num_envs, -1, np.int64)  # before the first
        self._next_seed = np.zeros(num_envs, np.int64)  # of the episode after the current one
        self._history: list[list[np.ndarray]] = [[] for _ in range(num_envs)]
        self._obs = np.zeros((num_envs, *_shape(facts.observations)), facts.observations.dtype)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._seed, self._episode[:] = np.arange(seed, seed + self.num_envs, dtype=np.int64), -1
        everyone = np.arange(self.num_envs)
        self._begin(everyone)
        no_actions = [np.zeros((0, *self._action_shape)) for _ in everyone]
        self._obs = self._crew.replay(everyone, self._seeds_of(everyone), no_actions)
        return self._obs.copy(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        if (self._episode < 0).any():
            raise UsageError("step: the batch has not begun; call reset or set_state first.")
        actions = self._bounded(actions)
        out: Outcome = self._crew.step(actions, self._next_seed)
        for history, action in zip(self._history, actions, strict=True):
            history.append(action)
        ended = out.terminated | out.truncated
        self._begin(np.flatnonzero(ended))
        self._obs = out.obs
        info = final_info(out.final_obs, ended)
        return out.obs.copy(), out.reward, out.cost, out.terminated, out.truncated, info

    def observe(self) -> np.ndarray:
        return self._obs.copy()

    def get_state(self, members: np.ndarray | None = None) -> State:
        rows = self._rows(members)
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

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        rows = self._rows(members)
        self._check(state, len(rows))
        self._seed[rows], self._episode[rows] = state["seed"], state["episode"]
        begun = np.flatnonzero(np.asarray(state["episode"]) >= 0)  # of the rows of `state`
        pasts = [np.asarray(state["actions"][k][: state["length"][k]]) for k in begun]
        for k, past in zip(begun, pasts, strict=True):
            self._history[rows[k]] = list(past)
        self._next_seed[rows] = self._seeds_of(rows, ahead=1)
        if len(begun):
            obs = self._crew.replay(rows[begun], self._seeds_of(rows[begun]), pasts)
            self._refuse_other_past(obs, np.asarray(state["observation"])[begun], rows[begun])
        self._obs[rows] = state["observation"]

    def close(self) -> None:
        self._crew.close()

    def _begin(self, members: np.ndarray) -> None:
        self._episode[members] += 1
        self._next_seed[members] = self._seeds_of(members, ahead=1)
        for i in members:
            self._history[i] = []

    def _seeds_of(self, members: np.ndarray, ahead: int = 0) -> np.ndarray:
        pairs = zip(self._seed[members].tolist(), (self._episode[members] + ahead).tolist(), strict=True)
        return np.array([episode_seed(seed, episode) for seed, episode in pairs], np.int64)

    @property
    def _action_shape(self) -> tuple[int, ...]:
        return _shape(self.single_action_space)

    def _bounded(self, actions: Any) -> np.ndarray:
        space, actions = self.single_action_space, np.asarray(actions)
        wanted = (self.num_envs, *self._action_shape)
        if actions.shape != wanted:
            raise UsageError(f"actions: shape {actions.shape} is not allowed; it must be {wanted}.")
        if np.isnan(actions).any():
            raise UsageError("actions: NaN is not allowed; every entry must be a number.")
        if isinstance(space, spaces.Box):
            return np.clip(actions, space.low, space.high).astype(space.dtype)
        assert isinstance(space, spaces.Discrete)
        return np.clip(actions, space.start, space.start + space.n - 1).astype(space.dtype)

    def _check(self, state: State, rows: int) -> None:
        if sorted(state) != sorted(ENTRIES):
            raise UsageError(f"state: entries {sorted(state)} are not allowed; they must be {sorted(ENTRIES)}.")
        for name in ENTRIES:
            if len(state[name]) != rows:
                raise UsageError(f"state: {len(state[name])} rows of {name!r} are not allowed; it must have {rows}.")

    def _refuse_other_past(self, replayed: np.ndarray, recorded: np.ndarray, members: np.ndarray) -> None:
        for member, ours, theirs in zip(members, replayed, recorded, strict=True):
            if not np.array_equal(ours, theirs, equal_nan=True):
                raise RunError(
                    f"{self.env_id} did not repeat itself: the same seed and actions led member {member} to another "
                    f"observation, so the run cannot go on exactly (see `flashbulb check {self.env_id}`)."
                )

    def _rows(self, members: np.ndarray | None) -> np.ndarray:
        return np.arange(self.num_envs)[slice(None) if members is None else members].reshape(-1)


def _shape(space: spaces.Space) -> tuple[int, ...]:
    return tuple(space.shape or ())
