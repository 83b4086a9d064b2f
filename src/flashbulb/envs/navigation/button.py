"""Button tasks: press the button that is the goal; hazards, gremlins and wrong buttons cost (section F)."""

from __future__ import annotations

import numpy as np

from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS
from flashbulb.envs.navigation.point_dynamics import World, glide
from flashbulb.envs.navigation.random_streams import choice, copy, next_double
from flashbulb.envs.navigation.robots import see_point
from flashbulb.envs.navigation.scoring import StepBuffers, Verdict, close_step, distance, in_hazard, verdict_on
from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import BUTTON_PAUSE
from flashbulb.jit import jit, jit_helper

COSTS = ("cost_hazards", "cost_gremlins", "cost_buttons")


@jit
def begin(batch: Batch, rules: Rules, members: np.ndarray) -> int:
    for i in members:
        _next_button(batch, rules, i, batch.objects[i, 0])
    return 0


@jit_helper
def _next_button(batch: Batch, rules: Rules, i: int, pos: np.ndarray) -> None:
    batch.button[i] = choice(batch.rng[i], rules.buttons[1] - rules.buttons[0])
    objects = batch.objects[i]
    copy(objects[rules.buttons[0] + batch.button[i]], objects[rules.goal], 2)
    batch.last_distance[i] = distance(pos, objects[rules.goal])
    batch.timer[i] = BUTTON_PAUSE


@jit
def judge(batch: Batch, rules: Rules, verdict: Verdict) -> int:
    """Returns how many episodes ended."""
    ended = 0
    buttons = rules.buttons[1] - rules.buttons[0]
    gremlins = rules.gremlins[1] - rules.gremlins[0]
    for i in range(len(batch.physics)):
        next_double(batch.rng[i])  # the original draws its number of substeps, always ten
        pos, touch = batch.physics[i, 1:3], batch.sensors[i, rules.touch :]
        now = distance(pos, batch.objects[i, rules.goal])
        met = touch[batch.button[i]] > 0
        reward = batch.last_distance[i] - now + (1.0 if met else 0.0)
        batch.last_distance[i] = now
        wrong = False
        for b in range(buttons):
            wrong |= b != batch.button[i] and touch[b] > 0
        caught = False
        for g in range(gremlins):
            caught |= touch[buttons + g] > 0
        verdict.parts[0, i] = 1.0 if in_hazard(pos, batch.objects[i], rules.hazards) else 0.0
        verdict.parts[1, i] = 1.0 if caught else 0.0
        verdict.parts[2, i] = 1.0 if wrong and rules.costs[0] and batch.timer[i] == 0 else 0.0
        close_step(batch, rules, i, reward, verdict)
        batch.timer[i] = max(0, batch.timer[i] - 1)
        verdict.goal_met[i] = met
        if met:
            _next_button(batch, rules, i, pos)
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
