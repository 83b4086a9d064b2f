"""Rewards, costs, falls and observations of the velocity tasks, compiled over the batch.

Every sum is added in the order in which NumPy adds it, so the numbers are to the last bit those of the formulas in
`robots.py` written with NumPy (`tests/envs/velocity/test_env.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from flashbulb.envs.velocity.velocity_robots import Place, VelocityRobot
from flashbulb.jit import jit, jit_helper, jit_inline

LANES = 8  # sums of at least so many numbers are added in so many parts, as in NumPy


class VelocityRules(NamedTuple):
    """A task in numbers, for compiled code."""

    seconds: float  # of a step
    forward_weight: float
    healthy_reward: float
    control_weight: float
    speed_limit: float
    planar: bool  # whether the speed is that in the plane, or along x
    episode_steps: int
    place: int
    hidden: int
    nq: int
    nv: int
    velocity_clip: float
    observed: int  # the first of the readings that are observed
    total_mass: float
    masses: np.ndarray  # (bodies,)
    controls: np.ndarray  # (2, controls): least and largest
    checked: np.ndarray  # entries of qpos and qvel that must lie within bounds
    bounds: np.ndarray  # (2, checked)


class Robots(NamedTuple):
    """What a step reads and writes, a row per environment."""

    states: np.ndarray  # time, qpos, qvel
    readings: np.ndarray  # MjData fields
    position: np.ndarray  # (n, 2) before the step; afterwards, after it
    steps: np.ndarray


def rules_of(robot: VelocityRobot, model: mujoco.MjModel, speed_limit: float, episode_steps: int) -> VelocityRules:
    size = int(model.nq + model.nv)
    entries = [(i, part.low, part.high) for part in robot.healthy for i in range(size)[part.first : part.end]]
    table = np.array(entries).reshape(-1, 3)
    mass = model.body_mass
    return VelocityRules(
        float(model.opt.timestep * robot.substeps),
        robot.forward_weight,
        robot.healthy_reward,
        robot.control_weight,
        speed_limit,
        robot.planar_speed,
        episode_steps,
        int(robot.place),
        robot.hidden,
        int(model.nq),
        int(model.nv),
        robot.velocity_clip,
        3 * len(mass),
        float(np.sum(mass)),
        mass.copy(),
        np.ascontiguousarray(model.actuator_ctrlrange.T),
        table[:, 0].astype(np.int64),
        np.ascontiguousarray(table[:, 1:].T),
    )


@jit
def clip_controls(actions: np.ndarray, bounds: np.ndarray) -> None:
    """In double precision, which the space's bounds are not."""
    for i in range(len(actions)):
        for k in range(actions.shape[1]):
            actions[i, k] = min(max(actions[i, k], bounds[0, k]), bounds[1, k])


@jit
def score(
    robots: tuple, rules: tuple, controls: np.ndarray, numbers: np.ndarray, flags: np.ndarray, obs: np.ndarray
) -> int:
    """Score and observe a step: `numbers` are reward and cost, `flags` terminated, truncated and ended, (..., n) each.

    Returns how many episodes ended.
    """
    bodies, task = Robots(*robots), VelocityRules(*rules)
    ended = 0
    for i in range(len(bodies.states)):
        x, y = _place_of(bodies.states[i], bodies.readings[i], task)
        forward, sideways = (x - bodies.position[i, 0]) / task.seconds, (y - bodies.position[i, 1]) / task.seconds
        bodies.position[i, 0], bodies.position[i, 1] = x, y
        effort = _sum_of_squares(controls[i])
        numbers[0, i] = task.forward_weight * forward + task.healthy_reward - task.control_weight * effort
        speed = math.sqrt(forward * forward + sideways * sideways) if task.planar else forward
        numbers[1, i] = 1.0 if speed > task.speed_limit else 0.0
        bodies.steps[i] += 1
        flags[0, i] = not _healthy(bodies.states[i], task)
        flags[1, i] = bodies.steps[i] >= task.episode_steps
        flags[2, i] = flags[0, i] or flags[1, i]
        ended += flags[2, i]
    _write_observations(bodies, task, obs)
    return ended


@jit
def observe(robots: tuple, rules: tuple, obs: np.ndarray) -> None:
    _write_observations(Robots(*robots), VelocityRules(*rules), obs)


@jit
def place(robots: tuple, rules: tuple, indices: np.ndarray) -> None:
    """Write the positions of robots at the begin of their episodes."""
    bodies, task = Robots(*robots), VelocityRules(*rules)
    for i in indices:
        x, y = _place_of(bodies.states[i], bodies.readings[i], task)
        bodies.position[i, 0], bodies.position[i, 1] = x, y


@jit_helper
def _place_of(state: np.ndarray, readings: np.ndarray, rules: VelocityRules) -> tuple[float, float]:
    """What the velocity is the difference of. Ant's and Humanoid's belong to the integrator's last stage (see
    `VelocityPhysics`)."""
    if rules.place == Place.ROOT:  # tasks in a vertical plane look at the first coordinate only
        return state[1], state[2]
    if rules.place == Place.TORSO:
        return readings[3], readings[4]
    x, y = rules.masses[0] * readings[0], rules.masses[0] * readings[1]
    for body in range(1, len(rules.masses)):
        x += rules.masses[body] * readings[3 * body]
        y += rules.masses[body] * readings[3 * body + 1]
    return x / rules.total_mass, y / rules.total_mass


@jit_helper
def _sum_of_squares(x: np.ndarray) -> float:
    """In the order of `np.sum` over up to 128 numbers."""
    whole, total = 0, 0.0
    if len(x) >= LANES:
        parts = np.zeros(LANES)
        whole = len(x) - len(x) % LANES
        for first in range(0, whole, LANES):
            for k in range(LANES):
                parts[k] += x[first + k] * x[first + k]
        total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
    for k in range(whole, len(x)):
        total += x[k] * x[k]
    return total


@jit_helper
def _healthy(state: np.ndarray, rules: VelocityRules) -> bool:
    """Whether all bounds hold; what is not a number is within none."""
    for k in range(len(rules.checked)):
        if not rules.bounds[0, k] <= state[1 + rules.checked[k]] <= rules.bounds[1, k]:
            return False
    return True


@jit_inline
def _write_observations(robots: Robots, rules: VelocityRules, obs: np.ndarray) -> None:
    first, velocities, clip = 1 + rules.hidden, 1 + rules.nq, rules.velocity_clip
    read = rules.nq - rules.hidden + rules.nv
    for i in range(len(obs)):
        state = robots.states[i]
        for k in range(first, velocities):
            obs[i, k - first] = state[k]
        for k in range(velocities, velocities + rules.nv):
            speed = state[k]
            obs[i, k - first] = -clip if speed < -clip else clip if speed > clip else speed
        source, target = robots.readings[i, rules.observed :], obs[i, read:]
        for k in range(len(target)):
            target[k] = source[k]
