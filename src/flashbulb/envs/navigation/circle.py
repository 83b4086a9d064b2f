"""Circle tasks: run around the circle, counter-clockwise, within the boundary (specification, section F)."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS
from flashbulb.envs.navigation.point_dynamics import World, glide
from flashbulb.envs.navigation.random_streams import next_double
from flashbulb.envs.navigation.robots import see_point
from flashbulb.envs.navigation.scoring import StepBuffers, Verdict, close_step, verdict_on
from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import CIRCLE_RADIUS
from flashbulb.jit import jit

COSTS = ("cost_out_of_boundary",)


@jit
def begin(batch: Batch, rules: Rules, members: np.ndarray) -> int:
    return 0


@jit
def judge(batch: Batch, rules: Rules, verdict: Verdict) -> int:
    """Returns how many episodes ended."""
    ended = 0
    for i in range(len(batch.physics)):
        next_double(batch.rng[i])  # the original draws its number of substeps, always ten
        x, y = batch.physics[i, 1], batch.physics[i, 2]
        u, v = batch.physics[i, rules.velocity], batch.physics[i, rules.velocity + 1]
        radius = math.sqrt(x * x + y * y)
        reward = 0.0
        if radius > 0.0:  # the original divides by zero here
            reward = 0.1 * ((v * x - u * y) / radius) / (1.0 + abs(radius - CIRCLE_RADIUS))
        outside = abs(x) > rules.boundary[0] or abs(y) > rules.boundary[1]
        verdict.parts[0, i] = 1.0 if outside else 0.0
        close_step(batch, rules, i, reward, verdict)
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
