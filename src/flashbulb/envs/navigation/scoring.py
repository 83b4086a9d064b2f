"""What the three aims have in common: distances, hazards, the limits on a reward, and where results go."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import HAZARD_RADIUS
from flashbulb.jit import jit_helper, jit_inline

REWARD_LIMIT = 10.0


class Verdict(NamedTuple):
    """What one step earned, one row per member. Costs are 0 or 1."""

    reward: np.ndarray
    cost: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    goal_met: np.ndarray
    parts: np.ndarray  # (kinds of cost, n)


StepBuffers = tuple[np.ndarray, np.ndarray]  # what a verdict is written on: numbers and flags


def empty_step_buffers(count: int, kinds: int) -> StepBuffers:
    return np.zeros((2 + kinds, count)), np.zeros((3, count), np.bool_)


@jit_inline
def verdict_on(sheet: StepBuffers) -> Verdict:
    """Two arrays are handed over to compiled code in less time than six."""
    numbers, flags = sheet
    return Verdict(numbers[0], numbers[1], flags[0], flags[1], flags[2], numbers[2:])


@jit_helper
def distance(pos: np.ndarray, place: np.ndarray) -> float:
    dx, dy = place[0] - pos[0], place[1] - pos[1]
    return math.sqrt(dx * dx + dy * dy)


@jit_helper
def in_hazard(pos: np.ndarray, objects: np.ndarray, rows: tuple[int, int]) -> bool:
    """Is the robot's origin strictly inside a hazard?"""
    for k in range(rows[0], rows[1]):  # noqa: SIM110 (compiled code has no any over generators)
        if distance(pos, objects[k]) < HAZARD_RADIUS:
            return True
    return False


@jit_helper
def clipped(reward: float) -> float:
    return min(max(reward, -REWARD_LIMIT), REWARD_LIMIT)


@jit_helper
def close_step(batch: Batch, rules: Rules, i: int, reward: float, verdict: Verdict) -> None:
    """Enter reward and cost, and count the step."""
    verdict.reward[i] = clipped(reward)
    for k in range(len(verdict.parts)):
        verdict.cost[i] = max(verdict.cost[i], verdict.parts[k, i])
    batch.steps[i] += 1
    verdict.truncated[i] = batch.steps[i] >= rules.episode_steps
