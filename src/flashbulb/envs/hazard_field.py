"""`HazardField-v0`: a point with momentum steers to goals among round hazards.

A small task for first experiments: a million steps take seconds. It is Safety-Gymnasium's Goal1 without the physics
engine (the same arena, placement, radii, reward, cost and lidar), so results carry over. The point accelerates along
its heading against linear drag, and a turn does not turn its velocity: to avoid hazards an agent must plan ahead. The
plane has no walls; an episode ends after 1,000 steps and never earlier.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numba import njit

from flashbulb.envs.base import Info, State, StepResult, checked_actions, env_rows, final_info
from flashbulb.envs.lidar import BINS, add_target
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.envs.rng import XOSHIRO_WORDS, xoshiro_seeded, xoshiro_uniform
from flashbulb.errors import UsageError

ARENA = 1.5  # objects are placed in [-ARENA, ARENA]^2
HAZARDS = 8
HAZARD_RADIUS = 0.2
GOAL_RADIUS = 0.3
EPISODE_STEPS = 1000

# Minimum distance of two objects: the sum of their keepouts. Minimum distance from the edge: the own keepout.
AGENT_KEEPOUT, GOAL_KEEPOUT, HAZARD_KEEPOUT = 0.4, 0.305, 0.18
PLACEMENT_TRIES = 1000

# Top speed is THRUST / DRAG; both velocity and yaw rate approach their targets exponentially.
DT = 0.05
THRUST = 10.0
DRAG = 4.0
TURN_RATE = 6.0
TURN_LAG = 0.1

LIDAR_RANGE = 3.0
MOTION = 3  # forward velocity, leftward velocity, yaw rate
OBS_DIM = MOTION + 2 * BINS

# The state of one environment. As records, a batch is a single argument of a kernel.
ENV_STATE = np.dtype(
    [
        ("position", np.float64, 2),
        ("heading", np.float64),
        ("velocity", np.float64, 2),
        ("yaw_rate", np.float64),
        ("goal", np.float64, 2),
        ("last_distance", np.float64),
        ("hazards", np.float64, (HAZARDS, 2)),
        ("elapsed", np.int64),
        ("rng", np.uint64, XOSHIRO_WORDS),
    ]
)
EnvState = Any  # one such record, whose fields only Numba knows
STATE_FIELDS = tuple(ENV_STATE.fields or ())
LAYOUT = ("position", "heading", "goal", "hazards")


@njit(cache=True)
def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


@njit(cache=True)
def _clearance(env: EnvState, p: np.ndarray, keepout: float, hazards: int) -> float:
    """Distance of `p` from the agent and the first `hazards` hazards beyond what is required; negative: too near."""
    clearance = _distance(p, env.position) - AGENT_KEEPOUT - keepout
    for j in range(hazards):
        clearance = min(clearance, _distance(p, env.hazards[j]) - HAZARD_KEEPOUT - keepout)
    return clearance


@njit(cache=True)
def _draw(env: EnvState, p: np.ndarray, keepout: float) -> None:
    extent = ARENA - keepout
    p[0] = xoshiro_uniform(env.rng, -extent, extent)
    p[1] = xoshiro_uniform(env.rng, -extent, extent)


@njit(cache=True)
def _place(env: EnvState, p: np.ndarray, keepout: float, hazards: int) -> None:
    """Draw a place for `p`: the first of PLACEMENT_TRIES candidates that is clear of the agent and the first `hazards`
    hazards, or else the one with the largest clearance.

    By area at least 40 % of the places are clear for a hazard and about 25 % for a goal. Hazards and the agent's
    keepout never cover the square of a goal, so even the fallback is in no hazard.
    """
    candidate, best = np.empty(2), -np.inf
    for _ in range(PLACEMENT_TRIES):
        _draw(env, candidate, keepout)
        clearance = _clearance(env, candidate, keepout, hazards)
        if clearance > best:
            best = clearance
            p[0], p[1] = candidate[0], candidate[1]
        if clearance >= 0.0:
            return


@njit(cache=True)
def _place_goal(env: EnvState) -> None:
    _place(env, env.goal, GOAL_KEEPOUT, HAZARDS)
    env.last_distance = _distance(env.position, env.goal)


@njit(cache=True)
def _begin(env: EnvState) -> None:
    """Start an episode: place the agent at rest, the hazards and the goal."""
    _draw(env, env.position, AGENT_KEEPOUT)
    env.heading = xoshiro_uniform(env.rng, 0.0, 2.0 * math.pi)
    env.velocity[0] = env.velocity[1] = env.yaw_rate = 0.0
    for j in range(HAZARDS):
        _place(env, env.hazards[j], HAZARD_KEEPOUT, j)
    _place_goal(env)
    env.elapsed = 0


@njit(cache=True)
def _begin_all(batch: np.ndarray) -> None:
    for i in range(batch.size):
        _begin(batch[i])


@njit(cache=True)
def _observe(env: EnvState, obs: np.ndarray) -> None:
    cos, sin = math.cos(env.heading), math.sin(env.heading)
    obs[0] = cos * env.velocity[0] + sin * env.velocity[1]
    obs[1] = cos * env.velocity[1] - sin * env.velocity[0]
    obs[2] = env.yaw_rate
    obs[MOTION:] = 0.0
    x, y = env.goal[0] - env.position[0], env.goal[1] - env.position[1]
    add_target(obs[MOTION : MOTION + BINS], cos * x + sin * y, cos * y - sin * x, LIDAR_RANGE, BINS)
    for j in range(HAZARDS):
        x, y = env.hazards[j, 0] - env.position[0], env.hazards[j, 1] - env.position[1]
        add_target(obs[MOTION + BINS :], cos * x + sin * y, cos * y - sin * x, LIDAR_RANGE, BINS)


@njit(cache=True)
def _observe_all(batch: np.ndarray, obs: np.ndarray) -> None:
    for i in range(batch.size):
        _observe(batch[i], obs[i])


@njit(cache=True)
def _move(env: EnvState, thrust: float, turn: float) -> None:
    """Semi-implicit Euler: yaw rate and velocity first, then the pose from the new ones."""
    env.yaw_rate += DT / TURN_LAG * (TURN_RATE * turn - env.yaw_rate)
    env.heading += DT * env.yaw_rate
    env.velocity[0] += DT * (THRUST * thrust * math.cos(env.heading) - DRAG * env.velocity[0])
    env.velocity[1] += DT * (THRUST * thrust * math.sin(env.heading) - DRAG * env.velocity[1])
    env.position[0] += DT * env.velocity[0]
    env.position[1] += DT * env.velocity[1]


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
        env = batch[i]
        _move(env, min(max(actions[i, 0], -1.0), 1.0), min(max(actions[i, 1], -1.0), 1.0))
        distance = _distance(env.position, env.goal)
        met = distance <= GOAL_RADIUS
        reward_cost[0, i] = env.last_distance - distance + met
        env.last_distance = distance
        reward_cost[1, i] = 0.0
        for j in range(HAZARDS):
            if _distance(env.position, env.hazards[j]) <= HAZARD_RADIUS:
                reward_cost[1, i] = 1.0
        if met:
            _place_goal(env)
        env.elapsed += 1
        truncated = env.elapsed >= EPISODE_STEPS
        flags[0, i], flags[1, i], flags[2, i] = False, truncated, met
        _observe(env, final_obs[i])
        if truncated:
            _begin(env)
            _observe(env, obs[i])
        else:
            obs[i] = final_obs[i]


class HazardField:
    """A batch of hazard fields; see `flashbulb.envs.base.CostVectorEnv`.

    Every returned array is new: no later call changes it. `info["goal_met"]` is true where a goal was reached.
    """

    env_id = "HazardField-v0"
    max_episode_steps = EPISODE_STEPS
    lidar_groups = ((MOTION, MOTION + BINS), (MOTION + BINS, OBS_DIM))

    def __init__(self, num_envs: int, seed: int) -> None:
        self.num_envs = num_envs
        low = np.r_[np.full(MOTION, -np.inf), np.zeros(2 * BINS)].astype(np.float32)
        high = np.r_[np.full(MOTION, np.inf), np.ones(2 * BINS)].astype(np.float32)
        self.single_observation_space = spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._batch = np.zeros(num_envs, ENV_STATE)
        self.reset(seed)  # so that the batch can be observed, stepped and saved from the start
        self._batch["rng"] = xoshiro_seeded(seed, num_envs)  # so that the first reset() is still that of `seed`

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self._batch["rng"] = xoshiro_seeded(seed, self.num_envs)
        _begin_all(self._batch)
        return self.observe(), {}

    def step(self, actions: np.ndarray) -> StepResult:
        n = self.num_envs
        actions = checked_actions(self.single_action_space, actions, n)
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

    def get_state(self, indices: np.ndarray | None = None) -> State:
        rows = env_rows(indices, self.num_envs)
        return {name: self._batch[name][rows] for name in STATE_FIELDS}

    def set_state(self, state: State, indices: np.ndarray | None = None) -> None:
        rows = env_rows(indices, self.num_envs)
        self._check("state", state, STATE_FIELDS, rows.size)
        for name in STATE_FIELDS:
            self._batch[name][rows] = state[name]

    def layout(self, indices: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Places seen from above: `position` and `heading` of the agent, `goal`, `hazards`."""
        state = self.get_state(indices)
        return {name: state[name] for name in LAYOUT}

    def set_layout(self, layout: dict[str, np.ndarray], indices: np.ndarray | None = None) -> None:
        """Set these places, with the agent at rest; timers and generators stay as they are."""
        rows = env_rows(indices, self.num_envs)
        self._check("layout", layout, LAYOUT, rows.size)
        for name in LAYOUT:
            self._batch[name][rows] = layout[name]
        self._batch["velocity"][rows] = 0.0
        self._batch["yaw_rate"][rows] = 0.0
        offset = (self._batch["goal"] - self._batch["position"])[rows]
        self._batch["last_distance"][rows] = np.linalg.norm(offset, axis=-1)

    def close(self) -> None:
        """Nothing to release."""

    def _check(self, field: str, given: dict[str, np.ndarray], names: tuple[str, ...], rows: int) -> None:
        """Check names, shapes and types before anything is written, so that an error leaves the batch unchanged."""
        if sorted(given) != sorted(names):
            raise UsageError(f"{field}: entries {sorted(given)} are not allowed; they must be {sorted(names)}.")
        for name in names:
            base, shape = ENV_STATE[name].base, (rows, *ENV_STATE[name].shape)
            value = np.asarray(given[name])
            if value.dtype != base or value.shape != shape:
                raise UsageError(
                    f"{field}: {name!r} of shape {value.shape} and type {value.dtype} is not "
                    f"allowed; it must be of shape {shape} and type {base}."
                )


def make(
    env_id: str, num_envs: int, seed: int, threads: int | None, physics: PhysicsBackend | None = None
) -> HazardField:
    """Called by the registry. `threads` and `physics` have no effect: one thread is fastest, and there is no MuJoCo."""
    return HazardField(num_envs, seed)
