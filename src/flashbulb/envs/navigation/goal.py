"""Goal tasks: reach the goal, which then moves on; hazards cost (specification, section F)."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.layout import redraw_goal
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS
from flashbulb.envs.navigation.point_dynamics import World, glide
from flashbulb.envs.navigation.random_streams import copy, next_double
from flashbulb.envs.navigation.robots import see_point
from flashbulb.envs.navigation.scoring import StepBuffers, Verdict, close_step, distance, in_hazard, verdict_on
from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import GOAL_RADIUS
from flashbulb.jit import jit, jit_helper

COSTS = ("cost_hazards", "cost_vases_contact", "cost_vases_velocity")
VASE_SPEED = 1e-4  # at which a vase counts as moving


@jit
def begin(batch: Batch, rules: Rules, members: np.ndarray) -> int:
    """The layout's goal was only a placeholder: draw the one that counts. Returns how many found no place."""
    failed = 0
    for i in members:
        objects = batch.objects[i]
        failed += not redraw_goal(batch.rng[i], objects, rules)
        measure(batch, rules, i)
    return failed


@jit_helper
def measure(batch: Batch, rules: Rules, i: int) -> None:
    batch.last_distance[i] = distance(batch.objects[i, 0], batch.objects[i, rules.goal])


@jit_helper
def _judge_vases(batch: Batch, rules: Rules, i: int, verdict: Verdict) -> None:
    """Touching a vase costs, and so does every vase that moves."""
    for f in range(len(rules.free)):
        speed = rules.free[f, 2]
        u, v, w = batch.physics[i, speed], batch.physics[i, speed + 1], batch.physics[i, speed + 2]
        if batch.sensors[i, rules.touch + f] > 0:
            verdict.parts[1, i] = 1.0
        if math.sqrt(u * u + v * v + w * w) >= VASE_SPEED:
            verdict.parts[2, i] = 1.0


@jit
def judge(batch: Batch, rules: Rules, verdict: Verdict) -> int:
    """Returns how many episodes ended."""
    ended = 0
    for i in range(len(batch.physics)):
        objects, pos = batch.objects[i], batch.physics[i, 1:3]
        next_double(batch.rng[i])  # the original draws its number of substeps, always ten
        now = distance(pos, objects[rules.goal])
        met = now <= GOAL_RADIUS
        reward = batch.last_distance[i] - now + (1.0 if met else 0.0)
        batch.last_distance[i] = now
        verdict.parts[0, i] = 1.0 if in_hazard(pos, objects, rules.hazards) else 0.0
        if rules.costs[1]:
            _judge_vases(batch, rules, i, verdict)
        close_step(batch, rules, i, reward, verdict)
        verdict.goal_met[i] = met
        if met:
            copy(pos, objects[0], 2)
            for f in range(len(rules.free)):
                row, column, _ = rules.free[f]
                copy(batch.physics[i, column:], objects[row], 2)
            verdict.terminated[i] = not redraw_goal(batch.rng[i], objects, rules)
            measure(batch, rules, i)
        ended += verdict.terminated[i] or verdict.truncated[i]
    return ended


@jit
def fast_step(world: World, actions: np.ndarray, sheet: StepBuffers, obs: np.ndarray) -> tuple[int, int]:
    """A whole step in one call if every Point glides; then zero, and how many episodes ended. Otherwise the number of
    those that do not: see `glide`."""
    batch, rules, everyone = world.batch, world.rules, world.everyone
    count = glide(batch, rules, world.course, everyone, actions, np.int64(SUBSTEPS), world.others)
    if count:
        return count, 0
    ended = judge(batch, rules, verdict_on(sheet))
    see_point(batch, rules, everyone, world.poses[0], world.poses[1], obs)
    return 0, ended
