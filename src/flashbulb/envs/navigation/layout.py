"""Layouts: where everything lies at the start of an episode.

Layouts are sampled by rejection, with the same draws as in the original, so that the same seed gives the same layout.
They can also be read and set by name, for tests, figures and scenarios.
"""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.task_state import Rules, TaskState
from flashbulb.envs.navigation.tasks import BUTTON_PAUSE, Aim, Level
from flashbulb.envs.rng import mt_uniform
from flashbulb.errors import UsageError
from flashbulb.jit import jit, jit_helper, jit_inline

LAYOUT_TRIES = 10_000  # to place everything
# Plain integers would be literal types to Numba, for each of which it compiles the called functions again.
DRAWS = np.int64(100)  # to place one object before the layout is started again
GOAL_DRAWS = np.int64(10_000)
VASE_HEIGHT = 0.1 - 4e-5
GREMLIN_START = 0.1
Index = int | np.integer
Layout = dict[str, np.ndarray]


@jit_inline
def _clear(x: float, y: float, row: Index, end: Index, objects: np.ndarray, keepout: np.ndarray) -> bool:
    """Whether an object at (x, y) keeps its distance from the first `end` others."""
    for k in range(end):
        if k != row:
            dx = x - objects[k, 0]
            dy = y - objects[k, 1]
            if math.sqrt(dx * dx + dy * dy) < keepout[k] + keepout[row]:
                return False
    return True


@jit_helper
def _place(stream: np.ndarray, row: Index, end: Index, draws: Index, objects: np.ndarray, rules: Rules) -> bool:
    """Draw places for one object until one is clear of the first `end` others; false if none was."""
    for _ in range(draws):
        x = mt_uniform(stream, rules.low[row, 0], rules.width[row, 0])
        y = mt_uniform(stream, rules.low[row, 1], rules.width[row, 1])
        if _clear(x, y, row, end, objects, rules.keepout):
            objects[row, 0] = x
            objects[row, 1] = y
            return True
    return False


@jit_helper
def sample_layout(stream: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """Fill `objects` (x, y, yaw); false if no layout was found."""
    count = len(rules.keepout)
    for _ in range(LAYOUT_TRIES):
        placed = np.int64(0)
        while placed < count and _place(stream, placed, placed, DRAWS, objects, rules):
            placed += 1
        if placed == count:
            for k in range(count):
                objects[k, 2] = mt_uniform(stream, 0.0, 2 * math.pi)
                if not math.isnan(rules.pinned[k, 0]):  # its draws only advance the stream
                    objects[k, 0] = rules.pinned[k, 0]
                    objects[k, 1] = rules.pinned[k, 1]
            return True
    return False


@jit_helper
def redraw_goal(stream: np.ndarray, objects: np.ndarray, rules: Rules) -> bool:
    """A new place for the goal among the other objects; false if there is none."""
    return _place(stream, rules.goal, len(rules.keepout), GOAL_DRAWS, objects, rules)


@jit
def sample_layouts(state: TaskState, rules: Rules, indices: np.ndarray) -> int:
    """New layouts for these environments; returns for how many none was found."""
    failed = 0
    for i in indices:
        failed += not sample_layout(state.rng[i], state.objects[i], rules)
    return failed


@jit
def place_bodies(state: TaskState, rules: Rules, indices: np.ndarray) -> None:
    """Put the free boxes in their places at rest, at time zero. Robots are placed by `Robot.place`."""
    for i in indices:
        row = state.physics[i]
        row[:] = 0.0
        for f in range(len(rules.free)):
            k, column, _ = rules.free[f]
            gremlin = rules.gremlins[0] <= k < rules.gremlins[1]
            row[column] = state.objects[i, k, 0]
            row[column + 1] = state.objects[i, k, 1]
            row[column + 2] = GREMLIN_START if gremlin else VASE_HEIGHT
            row[column + 3] = math.cos(state.objects[i, k, 2] / 2)
            row[column + 6] = math.sin(state.objects[i, k, 2] / 2)


def group_rows(level: Level) -> dict[str, tuple[int, int]]:
    """First and end row of each group in `TaskState.objects`; row 0 is the agent."""
    rows, end = {}, 1
    for group in level.groups:
        rows[group.name] = (end, end + group.count)
        end += group.count
    return rows


def placeable(level: Level) -> list[str]:
    """The names that `set_layout` accepts: groups that are not pinned, and for buttons which one is the goal."""
    named = [g.name for g in level.groups if not g.pinned]
    if level.aim is Aim.BUTTON:
        named[named.index("goal")] = "goal_button"
    return ["agent", *named]


def read_layout(
    state: TaskState, rules: Rules, level: Level, pos: np.ndarray, mat: np.ndarray, indices: np.ndarray
) -> Layout:
    """Current places of robot and vases; for gremlins the centres of their paths."""
    heading = np.arctan2(mat[indices, 1, 0], mat[indices, 0, 0])
    layout: Layout = {"agent": np.c_[pos[indices, :2], heading]}
    for name, (first, end) in group_rows(level).items():
        layout[name] = state.objects[indices, first:end].copy()
    for row, column, _ in rules.free:
        if not rules.gremlins[0] <= row < rules.gremlins[1]:
            body = state.physics[indices, column : column + 7]
            layout["vases"][:, row - group_rows(level)["vases"][0]] = np.c_[body[:, :2], read_yaw(body[:, 3:])]
    if level.aim is Aim.BUTTON:
        del layout["goal"]
        layout["goal_button"] = state.button[indices].copy()
    return {name: layout[name] for name in placeable(level)}


def complete_layout(level: Level, current: Layout, wanted: Layout) -> Layout:
    """The current layout with the wanted places, checked and broadcast; a yaw that is not given stays."""
    complete = {name: array.copy() for name, array in current.items()}
    for name, value in wanted.items():
        if name not in complete:
            raise UsageError(f"layout: {name!r} cannot be placed in this task; it has {', '.join(placeable(level))}.")
        target = complete[name]
        if name == "goal_button":
            _choose(target, value, len(current["buttons"][0]))
            continue
        try:
            places = np.asarray(value, dtype=np.float64)
            axes = places.shape[-1] if places.ndim else 0
            if axes not in (2, 3) or not np.isfinite(places).all():
                raise ValueError
            target[..., :axes] = np.broadcast_to(places, (*target.shape[:-1], axes))
        except ValueError:
            shape = (*target.shape[:-1], "2 or 3")
            raise UsageError(
                f"layout[{name!r}]: {np.shape(value)} is not allowed; it must hold finite numbers of shape {shape}."
            ) from None
    return complete


def _choose(target: np.ndarray, value: np.ndarray, count: int) -> None:
    chosen = np.asarray(value)
    fits = chosen.shape in ((), target.shape) and chosen.dtype.kind in "iu"
    if not fits or ((chosen < 0) | (chosen >= count)).any():
        raise UsageError(
            f"layout['goal_button']: {value!r} is not allowed; it must be whole numbers from 0 to {count - 1}."
        )
    target[:] = chosen


def write_layout(state: TaskState, rules: Rules, level: Level, layout: Layout, indices: np.ndarray) -> None:
    """Write a complete layout into `batch.objects` and make its goal current."""
    state.objects[indices, 0] = layout["agent"]
    for name, (first, end) in group_rows(level).items():
        if name in layout:
            state.objects[indices, first:end] = layout[name]
    if level.aim is Aim.BUTTON:
        state.button[indices] = layout["goal_button"]
        state.timer[indices] = BUTTON_PAUSE
        state.objects[indices, rules.goal, :2] = state.objects[indices, rules.buttons[0] + state.button[indices], :2]
    if rules.goal >= 0:
        gap = state.objects[indices, rules.goal, :2] - state.objects[indices, 0, :2]
        state.last_distance[indices] = np.sqrt((gap**2).sum(-1))


def read_yaw(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.T
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
