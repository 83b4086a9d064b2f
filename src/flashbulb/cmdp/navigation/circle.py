"""Circle tasks: run around the circle, counter-clockwise, within the boundary (specification, section F)."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.cmdp.navigation.batch import Batch, Rules
from flashbulb.cmdp.navigation.gliding import Poses, World, glide, opened
from flashbulb.cmdp.navigation.judging import Verdict, close_step
from flashbulb.cmdp.navigation.physics import SUBSTEPS
from flashbulb.cmdp.navigation.robots import see_point
from flashbulb.cmdp.navigation.streams import next_double
from flashbulb.cmdp.navigation.tasks import CIRCLE_RADIUS
from flashbulb.compiling import compiled

COSTS = ("cost_out_of_boundary",)


@compiled
def begin(batch: Batch, rules: Rules, members: np.ndarray) -> int:
    return 0


@compiled
def judge(batch: Batch, rules: Rules, verdict: Verdict) -> None:
    for i in range(len(batch.physics)):
        next_double(batch.rng[i])  # the original draws its number of substeps, always ten
        x, y = batch.physics[i, 1], batch.physics[i, 2]
        u, v = batch.physics[i, rules.velocity], batch.physics[i, rules.velocity + 1]
        radius = math.sqrt(x * x + y * y)
        reward = 0.0
        if radius > 0.0:  # the original divides by zero here
            reward = 0.1 * ((v * x - u * y) / radius) / (1.0 + abs(radius - CIRCLE_RADIUS))
        outside = abs(x) > rules.boundary[0] or abs(y) > rules.boundary[1]
        verdict.parts[i, 0] = 1.0 if outside else 0.0
        close_step(batch, rules, i, reward, verdict)


@compiled
def leap(world: World, actions: np.ndarray, others: np.ndarray, verdict: tuple, poses: Poses, obs: np.ndarray) -> int:
    """A whole step in one call if every Point glides. Otherwise the number of those that do not: see `glide`."""
    batch, rules, course = opened(world)
    everyone = np.arange(len(actions))
    count = glide(batch, rules, course, everyone, actions, np.int64(SUBSTEPS), others)
    if count == 0:
        judge(batch, rules, Verdict(*verdict))
        see_point(batch, rules, everyone, poses[0], poses[1], obs)
    return count
