"""Rewards, costs and goals of the three task families, compiled over the batch.

Goal: reach the goal, which then moves; hazards and vases cost. Circle: run around the circle counter-clockwise, within
the boundary. Button: press the button that is the goal; hazards, gremlins and wrong buttons cost.

Each family has `begin_*`, which prepares new episodes and returns how many could not be prepared; `score_*`, which
scores a step of all environments and returns how many episodes ended; and `fast_step_*`, which moves, scores and
observes in one call as long as no Point needs the simulator. The three `fast_step_*` differ only in the function that
they call. One function with it as an argument, or a factory, would be compiled again in every process: Numba caches
neither on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flashbulb.envs.navigation.layout import redraw_goal
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS
from flashbulb.envs.navigation.point_dynamics import StepContext, step_points
from flashbulb.envs.navigation.robots import observe_point
from flashbulb.envs.navigation.task_state import Rules, TaskState, copy
from flashbulb.envs.navigation.tasks import BUTTON_PAUSE, CIRCLE_RADIUS, GOAL_RADIUS, HAZARD_RADIUS, Aim
from flashbulb.envs.rng import mt_choice, mt_double
from flashbulb.jit import jit, jit_helper, jit_inline

REWARD_LIMIT = 10.0
VASE_SPEED = 1e-4  # at which a vase counts as moving
StepBuffers = tuple[np.ndarray, np.ndarray]  # numbers and flags of a step


class StepScores(NamedTuple):
    """Views of the step buffers, one column per environment. Costs are 0 or 1."""

    reward: np.ndarray
    cost: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    goal_met: np.ndarray
    cost_parts: np.ndarray  # (kinds of cost, n)


def empty_step_buffers(count: int, kinds: int) -> StepBuffers:
    """Buffers for `count` environments and so many kinds of cost."""
    return np.zeros((2 + kinds, count)), np.zeros((3, count), np.bool_)


@jit_inline
def scores_of(buffers: StepBuffers) -> StepScores:
    """The named views. Passing two arrays to compiled code takes less time than passing six."""
    numbers, flags = buffers
    return StepScores(numbers[0], numbers[1], flags[0], flags[1], flags[2], numbers[2:])


@jit_helper
def _distance(pos: np.ndarray, place: np.ndarray) -> float:
    dx, dy = place[0] - pos[0], place[1] - pos[1]
    return math.sqrt(dx * dx + dy * dy)


@jit_helper
def _in_hazard(pos: np.ndarray, objects: np.ndarray, rows: tuple[int, int]) -> bool:
    """Whether the robot's origin is strictly inside a hazard."""
    for k in range(rows[0], rows[1]):  # noqa: SIM110 (compiled code has no any over generators)
        if _distance(pos, objects[k]) < HAZARD_RADIUS:
            return True
    return False


@jit_helper
def _finish_step(state: TaskState, rules: Rules, i: int, reward: float, scores: StepScores) -> None:
    """Write reward and cost of environment `i`, and count the step."""
    scores.reward[i] = min(max(reward, -REWARD_LIMIT), REWARD_LIMIT)
    for k in range(len(scores.cost_parts)):
        scores.cost[i] = max(scores.cost[i], scores.cost_parts[k, i])
    state.steps[i] += 1
    scores.truncated[i] = state.steps[i] >= rules.episode_steps


# Goal tasks

GOAL_COSTS = ("cost_hazards", "cost_vases_contact", "cost_vases_velocity")


@jit
def begin_goal(state: TaskState, rules: Rules, indices: np.ndarray) -> int:
    """Draw the goals: the layout's goal is only a placeholder."""
    failed = 0
    for i in indices:
        objects = state.objects[i]
        failed += not redraw_goal(state.rng[i], objects, rules)
        _measure_distance(state, rules, i)
    return failed


@jit_helper
def _measure_distance(state: TaskState, rules: Rules, i: int) -> None:
    state.last_distance[i] = _distance(state.objects[i, 0], state.objects[i, rules.goal])


@jit_helper
def _score_vases(state: TaskState, rules: Rules, i: int, scores: StepScores) -> None:
    """Touching a vase costs, and so does a vase that moves."""
    for f in range(len(rules.free)):
        speed = rules.free[f, 2]
        u, v, w = state.physics[i, speed], state.physics[i, speed + 1], state.physics[i, speed + 2]
        if state.sensors[i, rules.touch + f] > 0:
            scores.cost_parts[1, i] = 1.0
        if math.sqrt(u * u + v * v + w * w) >= VASE_SPEED:
            scores.cost_parts[2, i] = 1.0


@jit
def score_goal(state: TaskState, rules: Rules, scores: StepScores) -> int:
    ended = 0
    for i in range(len(state.physics)):
        objects, pos = state.objects[i], state.physics[i, 1:3]
        mt_double(state.rng[i])  # the original draws its number of substeps, which is always ten
        now = _distance(pos, objects[rules.goal])
        met = now <= GOAL_RADIUS
        reward = state.last_distance[i] - now + (1.0 if met else 0.0)
        state.last_distance[i] = now
        scores.cost_parts[0, i] = 1.0 if _in_hazard(pos, objects, rules.hazards) else 0.0
        if rules.costs[1]:
            _score_vases(state, rules, i, scores)
        _finish_step(state, rules, i, reward, scores)
        scores.goal_met[i] = met
        if met:
            copy(pos, objects[0], 2)
            for f in range(len(rules.free)):
                row, column, _ = rules.free[f]
                copy(state.physics[i, column:], objects[row], 2)
            scores.terminated[i] = not redraw_goal(state.rng[i], objects, rules)
            _measure_distance(state, rules, i)
        ended += scores.terminated[i] or scores.truncated[i]
    return ended


@jit
def fast_step_goal(context: StepContext, actions: np.ndarray, buffers: StepBuffers, obs: np.ndarray) -> tuple[int, int]:
    """Returns how many Points need the simulator; if none, the step is done, and how many episodes ended."""
    state, rules, indices = context.state, context.rules, context.indices
    count = step_points(state, rules, context.motion, indices, actions, np.int64(SUBSTEPS), context.to_simulate)
    if count:
        return count, 0
    ended = score_goal(state, rules, scores_of(buffers))
    observe_point(state, rules, indices, context.poses[0], context.poses[1], obs)
    return 0, ended


# Circle tasks

CIRCLE_COSTS = ("cost_out_of_boundary",)


@jit
def begin_circle(state: TaskState, rules: Rules, indices: np.ndarray) -> int:
    """Nothing to prepare."""
    return 0


@jit
def score_circle(state: TaskState, rules: Rules, scores: StepScores) -> int:
    ended = 0
    for i in range(len(state.physics)):
        mt_double(state.rng[i])  # the original draws its number of substeps, which is always ten
        x, y = state.physics[i, 1], state.physics[i, 2]
        u, v = state.physics[i, rules.velocity], state.physics[i, rules.velocity + 1]
        radius = math.sqrt(x * x + y * y)
        reward = 0.0
        if radius > 0.0:  # the original divides by zero here
            reward = 0.1 * ((v * x - u * y) / radius) / (1.0 + abs(radius - CIRCLE_RADIUS))
        outside = abs(x) > rules.boundary[0] or abs(y) > rules.boundary[1]
        scores.cost_parts[0, i] = 1.0 if outside else 0.0
        _finish_step(state, rules, i, reward, scores)
        ended += scores.terminated[i] or scores.truncated[i]
    return ended


@jit
def fast_step_circle(
    context: StepContext, actions: np.ndarray, buffers: StepBuffers, obs: np.ndarray
) -> tuple[int, int]:
    """As `fast_step_goal`."""
    state, rules, indices = context.state, context.rules, context.indices
    count = step_points(state, rules, context.motion, indices, actions, np.int64(SUBSTEPS), context.to_simulate)
    if count:
        return count, 0
    ended = score_circle(state, rules, scores_of(buffers))
    observe_point(state, rules, indices, context.poses[0], context.poses[1], obs)
    return 0, ended


# Button tasks

BUTTON_COSTS = ("cost_hazards", "cost_gremlins", "cost_buttons")


@jit
def begin_button(state: TaskState, rules: Rules, indices: np.ndarray) -> int:
    """Choose the first goal button."""
    for i in indices:
        _next_button(state, rules, i, state.objects[i, 0])
    return 0


@jit_helper
def _next_button(state: TaskState, rules: Rules, i: int, pos: np.ndarray) -> None:
    state.button[i] = mt_choice(state.rng[i], rules.buttons[1] - rules.buttons[0])
    objects = state.objects[i]
    copy(objects[rules.buttons[0] + state.button[i]], objects[rules.goal], 2)
    state.last_distance[i] = _distance(pos, objects[rules.goal])
    state.timer[i] = BUTTON_PAUSE


@jit
def score_button(state: TaskState, rules: Rules, scores: StepScores) -> int:
    ended = 0
    buttons = rules.buttons[1] - rules.buttons[0]
    gremlins = rules.gremlins[1] - rules.gremlins[0]
    for i in range(len(state.physics)):
        mt_double(state.rng[i])  # the original draws its number of substeps, which is always ten
        pos, touch = state.physics[i, 1:3], state.sensors[i, rules.touch :]
        now = _distance(pos, state.objects[i, rules.goal])
        met = touch[state.button[i]] > 0
        reward = state.last_distance[i] - now + (1.0 if met else 0.0)
        state.last_distance[i] = now
        wrong = False
        for b in range(buttons):
            wrong |= b != state.button[i] and touch[b] > 0
        caught = False
        for g in range(gremlins):
            caught |= touch[buttons + g] > 0
        scores.cost_parts[0, i] = 1.0 if _in_hazard(pos, state.objects[i], rules.hazards) else 0.0
        scores.cost_parts[1, i] = 1.0 if caught else 0.0
        scores.cost_parts[2, i] = 1.0 if wrong and rules.costs[0] and state.timer[i] == 0 else 0.0
        _finish_step(state, rules, i, reward, scores)
        state.timer[i] = max(0, state.timer[i] - 1)
        scores.goal_met[i] = met
        if met:
            _next_button(state, rules, i, pos)
        ended += scores.terminated[i] or scores.truncated[i]
    return ended


@jit
def fast_step_button(
    context: StepContext, actions: np.ndarray, buffers: StepBuffers, obs: np.ndarray
) -> tuple[int, int]:
    """As `fast_step_goal`."""
    state, rules, indices = context.state, context.rules, context.indices
    count = step_points(state, rules, context.motion, indices, actions, np.int64(SUBSTEPS), context.to_simulate)
    if count:
        return count, 0
    ended = score_button(state, rules, scores_of(buffers))
    observe_point(state, rules, indices, context.poses[0], context.poses[1], obs)
    return 0, ended


class TaskScoring(NamedTuple):
    """The compiled functions of one task family, and the names of its costs."""

    begin: Callable[..., int]
    score: Callable[..., int]
    fast_step: Callable[..., tuple[int, int]]
    costs: tuple[str, ...]


SCORING = {
    Aim.GOAL: TaskScoring(begin_goal, score_goal, fast_step_goal, GOAL_COSTS),
    Aim.CIRCLE: TaskScoring(begin_circle, score_circle, fast_step_circle, CIRCLE_COSTS),
    Aim.BUTTON: TaskScoring(begin_button, score_button, fast_step_button, BUTTON_COSTS),
}
