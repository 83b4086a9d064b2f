"""Layouts by name: read where everything is, or put it where a test, a figure or a user's scenario wants it."""

from __future__ import annotations

import numpy as np

from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import BUTTON_PAUSE, Aim, Level
from flashbulb.errors import UsageError

Layout = dict[str, np.ndarray]


def group_rows(level: Level) -> dict[str, tuple[int, int]]:
    """First and end row of each group in `Batch.objects`; the agent has row 0."""
    rows, end = {}, 1
    for group in level.groups:
        rows[group.name] = (end, end + group.count)
        end += group.count
    return rows


def placeable(level: Level) -> list[str]:
    """The names `set_layout` understands: what is not pinned, and for buttons which one is the goal."""
    named = [g.name for g in level.groups if not g.pinned]
    if level.aim is Aim.BUTTON:
        named[named.index("goal")] = "goal_button"
    return ["agent", *named]


def read_layout(
    batch: Batch, rules: Rules, level: Level, pos: np.ndarray, mat: np.ndarray, members: np.ndarray
) -> Layout:
    """Robot and vases where they are now; gremlins where the centres of their paths are."""
    heading = np.arctan2(mat[members, 1, 0], mat[members, 0, 0])
    layout: Layout = {"agent": np.c_[pos[members, :2], heading]}
    for name, (first, end) in group_rows(level).items():
        layout[name] = batch.objects[members, first:end].copy()
    for row, column, _ in rules.free:
        if not rules.gremlins[0] <= row < rules.gremlins[1]:
            body = batch.physics[members, column : column + 7]
            layout["vases"][:, row - group_rows(level)["vases"][0]] = np.c_[body[:, :2], read_yaw(body[:, 3:])]
    if level.aim is Aim.BUTTON:
        del layout["goal"]
        layout["goal_button"] = batch.button[members].copy()
    return {name: layout[name] for name in placeable(level)}


def complete_layout(level: Level, current: Layout, wanted: Layout) -> Layout:
    """The current layout with the wanted places in it, checked and broadcast; a yaw not given stays."""
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


def write_layout(batch: Batch, rules: Rules, level: Level, layout: Layout, members: np.ndarray) -> None:
    """Write a complete layout into `batch.objects` and make its goal current."""
    batch.objects[members, 0] = layout["agent"]
    for name, (first, end) in group_rows(level).items():
        if name in layout:
            batch.objects[members, first:end] = layout[name]
    if level.aim is Aim.BUTTON:
        batch.button[members] = layout["goal_button"]
        batch.timer[members] = BUTTON_PAUSE
        batch.objects[members, rules.goal, :2] = batch.objects[members, rules.buttons[0] + batch.button[members], :2]
    if rules.goal >= 0:
        gap = batch.objects[members, rules.goal, :2] - batch.objects[members, 0, :2]
        batch.last_distance[members] = np.sqrt((gap**2).sum(-1))


def read_yaw(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.T
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
