"""What an agent would see from everywhere in an arena, and how much it would remind it of danger."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from flashbulb.analysis.memory_snapshots import MemorySnapshot
from flashbulb.config import MemoryConfig
from flashbulb.envs import make
from flashbulb.envs.hazard_field import MOTION, HazardField
from flashbulb.envs.navigation import Navigation
from flashbulb.envs.navigation.render import HALF_VIEW, Scene
from flashbulb.errors import UsageError
from flashbulb.plots.video import scene_of

SIDE = 49  # places along each side of the map
HEADINGS = 16
PORTION = 3_000  # places seen at a time
MARKS = 300  # remembered states that are matched with views, at most


class Arena(NamedTuple):
    """One layout seen from a grid of places, rows from the bottom up, at rest, in several headings."""

    scene: Scene
    places: np.ndarray  # (SIDE * SIDE, 2)
    views: np.ndarray  # (SIDE * SIDE, HEADINGS, n) observations
    felt: int  # leading entries that say how the agent moves; the others say what it sees


def look_around(env: Navigation | HazardField) -> Arena:
    """The layout of the first member, from everywhere."""
    scene = scene_of(env, 0.0)
    line = np.linspace(-HALF_VIEW, HALF_VIEW, SIDE)
    places = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    turns = np.arange(HEADINGS) * 2 * np.pi / HEADINGS
    poses = np.c_[np.repeat(places, HEADINGS, axis=0), np.tile(turns, len(places))]
    views = np.concatenate([_see(env, poses[k : k + PORTION]) for k in range(0, len(poses), PORTION)])
    felt = env.robot.proprioception if isinstance(env, Navigation) else MOTION
    return Arena(scene, places, views.reshape(len(places), HEADINGS, -1), felt)


def arena_env(env_id: str, seed: int) -> Navigation | HazardField:
    """Somewhere to look around in, begun in a layout of that seed."""
    env = make(env_id, PORTION, seed)
    if not isinstance(env, Navigation | HazardField):
        env.close()
        raise UsageError(
            f"run: {env_id} has no arena to be seen from above; it must be a navigation task or HazardField-v0."
        )
    env.reset(seed=seed)
    return env


def _see(env: Navigation | HazardField, poses: np.ndarray) -> np.ndarray:
    """Observations from these poses in the layout of the first member."""
    count = env.num_envs
    filled = np.resize(poses, (count, 3))
    here = {name: np.repeat(rows, count, axis=0) for name, rows in env.layout(np.array([0])).items()}
    if isinstance(env, Navigation):
        env.set_layout(here | {"agent": filled})
    else:
        env.set_layout(here | {"position": filled[:, :2].copy(), "heading": filled[:, 2].copy()})
    return env.observe()[: len(poses)].astype(np.float32)


def fear(arena: Arena, kept: MemorySnapshot, config: MemoryConfig, workers: int = 1) -> np.ndarray:
    """The largest c^I at every place (SIDE, SIDE): over headings, with the motion that frightens most.

    An agent that stands still is unlike any that ran into danger. So in each heading it sees what there is to see,
    and moves as it did in the remembered state with the most similar view.
    """
    if kept.memory.size == 0:
        return np.zeros((SIDE, SIDE))
    remembered = _some(kept)
    views = arena.views.copy()
    for heading in range(HEADINGS):
        nearest = _view_distances(arena, kept, remembered, heading).argmin(axis=1)
        views[:, heading, : arena.felt] = remembered[nearest, : arena.felt]
    flat = views.reshape(-1, views.shape[-1])
    cost, _ = kept.memory.intrinsic_cost(flat, kept.normalise, config, None, workers)
    return cost.reshape(SIDE, SIDE, HEADINGS).max(axis=-1)


def reminders(arena: Arena, kept: MemorySnapshot) -> np.ndarray:
    """Where in this arena it looks most like remembered states (m, 2).

    A memory holds observations, and those of many layouts, so it has no places to show. Each of up to MARKS states is
    shown at the place from which, in one of the headings, the view is nearest to its own.
    """
    if kept.memory.size == 0:
        return np.zeros((0, 2))
    remembered = _some(kept)
    each = [_view_distances(arena, kept, remembered, heading) for heading in range(HEADINGS)]
    return arena.places[np.min(each, axis=0).argmin(axis=0)]


def _some(kept: MemorySnapshot) -> np.ndarray:
    """Up to MARKS of the remembered states, evenly spread over the memory."""
    size = kept.memory.size
    return kept.memory.states[np.linspace(0, size - 1, min(MARKS, size)).round().astype(int)]


def _view_distances(arena: Arena, kept: MemorySnapshot, remembered: np.ndarray, heading: int) -> np.ndarray:
    """Squared distances (place, state) between normalised views, leaving out how the agent moves."""
    here = kept.normalise(arena.views[:, heading])[:, arena.felt :]
    return cdist(here, kept.normalise(remembered)[:, arena.felt :], "sqeuclidean")
