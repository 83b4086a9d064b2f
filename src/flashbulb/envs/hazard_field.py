"""`HazardField-v0`: a point with momentum steers to goals among round hazards. Small, and fast enough for
first experiments: a million steps take seconds.

It is Safety-Gymnasium's Goal1 without the physics engine, so that what is learnt about a learner here is
likely to hold there: the same arena, placement, radii, reward, cost and lidar. The point accelerates along
its heading and glides against drag, so a turn does not turn its velocity: to keep out of hazards an agent
must look ahead. The plane has no walls; an episode ends after 1,000 steps and in no other way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numba import njit

from flashbulb.envs import xoshiro
from flashbulb.envs.base import Info, State, StepResult, final_info
from flashbulb.errors import UsageError

ARENA = 1.5  # objects are placed in [-ARENA, ARENA]^2
HAZARDS = 8
HAZARD_RADIUS = 0.2
GOAL_RADIUS = 0.3
EPISODE_STEPS = 1000

# Two objects are placed no nearer than the sum of their keepouts, and no nearer to the edge than their own.
AGENT_KEEPOUT, GOAL_KEEPOUT, HAZARD_KEEPOUT = 0.4, 0.305, 0.18
PLACEMENT_TRIES = 1000

# Top speed is THRUST / DRAG; both velocity and yaw rate approach their targets exponentially.
DT = 0.05
THRUST = 10.0
DRAG = 4.0
TURN_RATE = 6.0
TURN_LAG = 0.1

BINS = 16
LIDAR_RANGE = 3.0
MOTION = 3  # forward velocity, leftward velocity, yaw rate
OBS_DIM = MOTION + 2 * BINS

# All that decides a member's future. One record per member lets a kernel take the batch as one argument.
MEMBER = np.dtype(
    [
        ("position", np.float64, 2),
        ("heading", np.float64),
        ("velocity", np.float64, 2),
        ("yaw_rate", np.float64),
        ("goal", np.float64, 2),
        ("last_distance", np.float64),
        ("hazards", np.float64, (HAZARDS, 2)),
        ("elapsed", np.int64),
        ("rng", np.uint64, xoshiro.STATE_WORDS),
    ]
)
Member = Any  # one such record, whose fields only Numba knows
MEMBER_FIELDS = tuple(MEMBER.fields or ())
LAYOUT = ("position", "heading", "goal", "hazards")


@njit(cache=True)
def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


@njit(cache=True)
def _clearance(m: Member, p: np.ndarray, keepout: float, hazards: int) -> float:
    """What `p` has to spare of its distance from agent and first `hazards` hazards; negative: too near."""
    clearance = _distance(p, m.position) - AGENT_KEEPOUT - keepout
    for j in range(hazards):
        clearance = min(clearance, _distance(p, m.hazards[j]) - HAZARD_KEEPOUT - keepout)
    return clearance


@njit(cache=True)
def _draw(m: Member, p: np.ndarray, keepout: float) -> None:
    extent = ARENA - keepout
    p[0] = xoshiro.uniform(m.rng, -extent, extent)
    p[1] = xoshiro.uniform(m.rng, -extent, extent)


@njit(cache=True)
def _place(m: Member, p: np.ndarray, keepout: float, hazards: int) -> None:
    """Put `p` clear of the agent and the first `hazards` hazards: the first of a bounded number of candidates
    that is clear, or else the clearest.

    By area at least two in five places are clear for a hazard; about a quarter are for a goal. Hazards and
    the agent's keepout never cover a goal's square, so even the clearest goal of the rest is in no hazard.
    """
    candidate, best = np.empty(2), -np.inf
    for _ in range(PLACEMENT_TRIES):
        _draw(m, candidate, keepout)
        clearance = _clearance(m, candidate, keepout, hazards)
        if clearance > best:
            best = clearance
            p[0], p[1] = candidate[0], candidate[1]
        if clearance >= 0.0:
            return


@njit(cache=True)
def _place_goal(m: Member) -> None:
    _place(m, m.goal, GOAL_KEEPOUT, HAZARDS)
    m.last_distance = _distance(m.position, m.goal)


@njit(cache=True)
def _begin(m: Member) -> None:
    """A new episode: agent at rest, hazards, goal."""
    _draw(m, m.position, AGENT_KEEPOUT)
    m.heading = xoshiro.uniform(m.rng, 0.0, 2.0 * math.pi)
    m.velocity[0] = m.velocity[1] = m.yaw_rate = 0.0
    for j in range(HAZARDS):
        _place(m, m.hazards[j], HAZARD_KEEPOUT, j)
    _place_goal(m)
    m.elapsed = 0


@njit(cache=True)
def _begin_all(batch: np.ndarray) -> None:
    for i in range(batch.size):
        _begin(batch[i])


@njit(cache=True)
def _sense(bins: np.ndarray, forward: float, left: float) -> None:
    """Add one target, in the agent's frame, to a pseudo lidar: closeness in the target's bin, and in its two
    neighbours the share by which the target leans towards them."""
    closeness = max(0.0, LIDAR_RANGE - math.sqrt(forward * forward + left * left)) / LIDAR_RANGE
    angle = math.atan2(left, forward) * (BINS / (2.0 * math.pi))
    if angle < 0.0:
        angle += BINS
    b = min(int(angle), BINS - 1)  # a tiny negative angle rounds to a whole turn
    lean = angle - b
    after, before = (b + 1) % BINS, (b - 1) % BINS
    bins[b] = max(bins[b], closeness)
    bins[after] = max(bins[after], lean * closeness)
    bins[before] = max(bins[before], (1.0 - lean) * closeness)


@njit(cache=True)
def _observe(m: Member, obs: np.ndarray) -> None:
    cos, sin = math.cos(m.heading), math.sin(m.heading)
    obs[0] = cos * m.velocity[0] + sin * m.velocity[1]
    obs[1] = cos * m.velocity[1] - sin * m.velocity[0]
    obs[2] = m.yaw_rate
    obs[MOTION:] = 0.0
    x, y = m.goal[0] - m.position[0], m.goal[1] - m.position[1]
    _sense(obs[MOTION : MOTION + BINS], cos * x + sin * y, cos * y - sin * x)
    for j in range(HAZARDS):
        x, y = m.hazards[j, 0] - m.position[0], m.hazards[j, 1] - m.position[1]
        _sense(obs[MOTION + BINS :], cos * x + sin * y, cos * y - sin * x)


@njit(cache=True)
def _observe_all(batch: np.ndarray, obs: np.ndarray) -> None:
    for i in range(batch.size):
        _observe(batch[i], obs[i])


@njit(cache=True)
def _move(m: Member, thrust: float, turn: float) -> None:
    """Semi-implicit Euler: yaw rate and velocity first, then the pose from the new ones."""
    m.yaw_rate += DT / TURN_LAG * (TURN_RATE * turn - m.yaw_rate)
    m.heading += DT * m.yaw_rate
    m.velocity[0] += DT * (THRUST * thrust * math.cos(m.heading) - DRAG * m.velocity[0])
    m.velocity[1] += DT * (THRUST * thrust * math.sin(m.heading) - DRAG * m.velocity[1])
    m.position[0] += DT * m.velocity[0]
    m.position[1] += DT * m.velocity[1]


@njit(cache=True)
def _step_all(
    batch: np.ndarray,
    actions: np.ndarray,
    obs: np.ndarray,
    final_obs: np.ndarray,
    reward_cost: np.ndarray,
    flags: np.ndarray,
) -> None:
    for i in range(batch.size):
        m = batch[i]
        _move(m, min(max(actions[i, 0], -1.0), 1.0), min(max(actions[i, 1], -1.0), 1.0))
        distance = _distance(m.position, m.goal)
        met = distance <= GOAL_RADIUS
        reward_cost[0, i] = m.last_distance - distance + met
        m.last_distance = distance
        reward_cost[1, i] = 0.0
        for j in range(HAZARDS):
            if _distance(m.position, m.hazards[j]) <= HAZARD_RADIUS:
                reward_cost[1, i] = 1.0
        if met:
            _place_goal(m)
        m.elapsed += 1
        truncated = m.elapsed >= EPISODE_STEPS
        flags[0, i], flags[1, i], flags[2, i] = False, truncated, met
        _observe(m, final_obs[i])
        if truncated:
            _begin(m)
            _observe(m, obs[i])
        else:
            obs[i] = final_obs[i]


class HazardField:
    """A batch of hazard fields; see `flashbulb.envs.base.CostVectorEnv`.

    Every array returned is new: no later call changes it. `info["goal_met"]` tells who reached a goal.
    """

    env_id = "HazardField-v0"
    max_episode_steps = EPISODE_STEPS
    rings = ((MOTION, MOTION + BINS), (MOTION + BINS, OBS_DIM))

    def __init__(self, num_envs: int, seed: int) -> None:
        self.num_envs = num_envs
        low = np.r_[np.full(MOTION, -np.inf), np.zeros(2 * BINS)].astype(np.float32)
        high = np.r_[np.full(MOTION, np.inf), np.ones(2 * BINS)].astype(np.float32)
        self.single_observation_space = spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._batch = np.zeros(num_envs, MEMBER)
        self.reset(seed)  # so that a batch can be observed, stepped and snapshot from the start
        self._batch["rng"] = xoshiro.seeded(seed, num_envs)  # and its first reset() is that of `seed`

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._batch["rng"] = xoshiro.seeded(seed, self.num_envs)
        _begin_all(self._batch)
        return self.observe(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        n = self.num_envs
        actions = np.ascontiguousarray(actions, np.float64)
        if actions.shape != (n, 2):
            raise UsageError(f"actions: shape {actions.shape} is not allowed; it must be {(n, 2)}.")
        if np.isnan(actions).any():
            raise UsageError("actions: NaN is not allowed; they must be numbers.")
        obs, final_obs = np.empty((n, OBS_DIM), np.float32), np.empty((n, OBS_DIM), np.float32)
        reward_cost, flags = np.empty((2, n)), np.empty((3, n), np.bool_)
        _step_all(self._batch, actions, obs, final_obs, reward_cost, flags)
        (reward, cost), (terminated, truncated, met) = reward_cost, flags
        info = final_info(final_obs, truncated.copy()) | {"goal_met": met}
        return obs, reward, cost, terminated, truncated, info

    def observe(self) -> np.ndarray:
        obs = np.empty((self.num_envs, OBS_DIM), np.float32)
        _observe_all(self._batch, obs)
        return obs

    def get_state(self, members: np.ndarray | None = None) -> State:
        rows = self._rows(members)
        return {name: self._batch[name][rows] for name in MEMBER_FIELDS}

    def set_state(self, state: State, members: np.ndarray | None = None) -> None:
        rows = self._rows(members)
        self._check("state", state, MEMBER_FIELDS, rows.size)
        for name in MEMBER_FIELDS:
            self._batch[name][rows] = state[name]

    def layout(self, members: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Where things are, seen from above: `position` and `heading` of the agent, `goal`, `hazards`."""
        state = self.get_state(members)
        return {name: state[name] for name in LAYOUT}

    def set_layout(self, layout: dict[str, np.ndarray], members: np.ndarray | None = None) -> None:
        """Rearrange the members, with the agent at rest; their timers and generators go on."""
        rows = self._rows(members)
        self._check("layout", layout, LAYOUT, rows.size)
        for name in LAYOUT:
            self._batch[name][rows] = layout[name]
        self._batch["velocity"][rows] = 0.0
        self._batch["yaw_rate"][rows] = 0.0
        way = (self._batch["goal"] - self._batch["position"])[rows]
        self._batch["last_distance"][rows] = np.linalg.norm(way, axis=-1)

    def close(self) -> None:
        """Nothing to release."""

    def _rows(self, members: np.ndarray | None) -> np.ndarray:
        return np.arange(self.num_envs)[slice(None) if members is None else members].reshape(-1)

    def _check(self, field: str, given: dict[str, np.ndarray], names: tuple[str, ...], rows: int) -> None:
        """Refuse before anything is written, so that a refusal leaves the batch as it was."""
        if sorted(given) != sorted(names):
            raise UsageError(f"{field}: entries {sorted(given)} are not allowed; they must be {sorted(names)}.")
        for name in names:
            base, shape = MEMBER[name].base, (rows, *MEMBER[name].shape)
            value = np.asarray(given[name])
            if value.dtype != base or value.shape != shape:
                raise UsageError(
                    f"{field}: {name!r} of shape {value.shape} and type {value.dtype} is not "
                    f"allowed; it must be of shape {shape} and type {base}."
                )


def make(env_id: str, num_envs: int, seed: int, threads: int | None) -> HazardField:
    """The registry's factory. One thread is fastest at these sizes, so `threads` changes nothing."""
    return HazardField(num_envs, seed)
