"""Where everything lies at the start of an episode: rejection sampling draw by draw as in the original
(specification, section D), so that the same seed gives the same layout."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.random_streams import uniform
from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.jit import jit, jit_helper, jit_inline

LAYOUTS = 10_000  # tries to place everything
# Plain integers would be types of their own to the compiler, each with its own copy of what they are passed to.
DRAWS = np.int64(100)  # tries to place one object before the layout is begun anew
GOAL_DRAWS = np.int64(10_000)
VASE_HEIGHT = 0.1 - 4e-5
GREMLIN_START = 0.1
Index = int | np.integer


@jit_inline
def _clear(x: float, y: float, row: Index, end: Index, objects: np.ndarray, keepout: np.ndarray) -> bool:
    """Does an object at (x, y) keep its distance from the first `end` others?"""
    for k in range(end):
        if k != row:
            dx = x - objects[k, 0]
            dy = y - objects[k, 1]
            if math.sqrt(dx * dx + dy * dy) < keepout[k] + keepout[row]:
                return False
    return True


@jit_helper
def _place(stream: np.ndarray, row: Index, end: Index, draws: Index, objects: np.ndarray, rules: Rules) -> bool:
    """Draw places for one object until one is clear of the first `end` others."""
    for _ in range(draws):
        x = uniform(stream, rules.low[row, 0], rules.width[row, 0])
        y = uniform(stream, rules.low[row, 1], rules.width[row, 1])
        if _clear(x, y, row, end, objects, rules.keepout):
            objects[row, 0] = x
            objects[row, 1] = y
            return True
    return False


@jit_helper
def sample_layout(stream: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """Fill `objects` (x, y, yaw); false if no layout was found."""
    count = len(rules.keepout)
    for _ in range(LAYOUTS):
        placed = np.int64(0)
        while placed < count and _place(stream, placed, placed, DRAWS, objects, rules):
            placed += 1
        if placed == count:
            for k in range(count):
                objects[k, 2] = uniform(stream, 0.0, 2 * math.pi)
                if not math.isnan(rules.pinned[k, 0]):  # its draws only move the stream on
                    objects[k, 0] = rules.pinned[k, 0]
                    objects[k, 1] = rules.pinned[k, 1]
            return True
    return False


@jit_helper
def redraw_goal(stream: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """A new place for the goal among the other objects; false if there is none."""
    return _place(stream, rules.goal, len(rules.keepout), GOAL_DRAWS, objects, rules)


@jit
def sample_layouts(batch: Batch, rules: Rules, members: np.ndarray) -> int:
    """New layouts for the members; the number of those for which none was found."""
    failed = 0
    for i in members:
        failed += not sample_layout(batch.rng[i], batch.objects[i], rules)
    return failed


@jit
def place_bodies(batch: Batch, rules: Rules, members: np.ndarray) -> None:
    """Put the free boxes where the layout says, at rest, at time zero. Robots place themselves."""
    for i in members:
        row = batch.physics[i]
        row[:] = 0.0
        for f in range(len(rules.free)):
            k, column, _ = rules.free[f]
            gremlin = rules.gremlins[0] <= k < rules.gremlins[1]
            row[column] = batch.objects[i, k, 0]
            row[column + 1] = batch.objects[i, k, 1]
            row[column + 2] = GREMLIN_START if gremlin else VASE_HEIGHT
            row[column + 3] = math.cos(batch.objects[i, k, 2] / 2)
            row[column + 6] = math.sin(batch.objects[i, k, 2] / 2)
