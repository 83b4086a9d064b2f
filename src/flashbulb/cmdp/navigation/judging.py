"""What the three aims have in common: distances, hazards, the limits on a reward, and where results go."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flashbulb.cmdp.navigation.batch import Batch, Rules
from flashbulb.cmdp.navigation.tasks import HAZARD_RADIUS
from flashbulb.compiling import compiled

REWARD_LIMIT = 10.0


class Verdict(NamedTuple):
    """What one step earned, one row per member. Costs are 0 or 1."""

    reward: np.ndarray
    cost: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    goal_met: np.ndarray
    parts: np.ndarray  # (n, kinds of cost)


def empty_verdict(count: int, kinds: int) -> Verdict:
    terminated, truncated, goal_met = np.zeros((3, count), dtype=bool)
    return Verdict(np.zeros(count), np.zeros(count), terminated, truncated, goal_met, np.zeros((count, kinds)))


@compiled
def distance(pos: np.ndarray, place: np.ndarray) -> float:
    dx, dy = place[0] - pos[0], place[1] - pos[1]
    return math.sqrt(dx * dx + dy * dy)


@compiled
def in_hazard(pos: np.ndarray, objects: np.ndarray, rows: tuple[int, int]) -> bool:
    """Is the robot's origin strictly inside a hazard?"""
    for k in range(rows[0], rows[1]):  # noqa: SIM110 (compiled code has no any over generators)
        if distance(pos, objects[k]) < HAZARD_RADIUS:
            return True
    return False


@compiled
def clipped(reward: float) -> float:
    return min(max(reward, -REWARD_LIMIT), REWARD_LIMIT)


@compiled
def close_step(batch: Batch, rules: Rules, i: int, reward: float, verdict: Verdict) -> None:
    """Enter reward and cost, and count the step."""
    verdict.reward[i] = clipped(reward)
    for k in range(verdict.parts.shape[1]):
        verdict.cost[i] = max(verdict.cost[i], verdict.parts[i, k])
    batch.steps[i] += 1
    verdict.truncated[i] = batch.steps[i] >= rules.episode_steps
