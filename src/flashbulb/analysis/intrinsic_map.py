"""Maps of the intrinsic cost: what an agent observes from everywhere in a layout, and the intrinsic cost of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from flashbulb.analysis.memory_snapshots import MemorySnapshot
from flashbulb.config import MemoryConfig
from flashbulb.envs import env_ids, make
from flashbulb.envs.hazard_field import MOTION, HazardField
from flashbulb.envs.navigation import Navigation
from flashbulb.envs.navigation.render import HALF_VIEW, Scene
from flashbulb.envs.registry import NAMESPACE
from flashbulb.envs.task_views import scene_of
from flashbulb.errors import UsageError

SIDE = 49  # grid points along each side of the map
# The scale of every map, fixed so that maps can be compared: c^I lies in [0, 1] (memory/intrinsic_cost.py), mostly
# near 0.03, which its cube root brings out.
HEAT_LOW, HEAT_HIGH, HEAT_POWER = 0.0, 1.0, 1 / 3
HEADINGS = 16
BATCH = 3_000  # poses observed at a time
MATCHED_STATES = 300  # remembered states that are compared with views, at most


class LayoutViews(NamedTuple):
    """One layout observed from a grid of positions, rows from the bottom up, at rest, in several headings."""

    scene: Scene
    positions: np.ndarray  # (SIDE * SIDE, 2)
    views: np.ndarray  # (SIDE * SIDE, HEADINGS, n) observations
    motion: int  # leading entries of an observation that say how the agent moves; the others say what it sees


def observe_layout(env: Navigation | HazardField) -> LayoutViews:
    """The layout of the first environment, observed from the whole grid."""
    scene = scene_of(env, 0.0)
    line = np.linspace(-HALF_VIEW, HALF_VIEW, SIDE)
    positions = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    turns = np.arange(HEADINGS) * 2 * np.pi / HEADINGS
    poses = np.c_[np.repeat(positions, HEADINGS, axis=0), np.tile(turns, len(positions))]
    views = np.concatenate([_observe(env, poses[k : k + BATCH]) for k in range(0, len(poses), BATCH)])
    motion = env.robot.proprioception if isinstance(env, Navigation) else MOTION
    return LayoutViews(scene, positions, views.reshape(len(positions), HEADINGS, -1), motion)


def map_env(env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None) -> Navigation | HazardField:
    """An environment to observe layouts in, reset to a layout of that seed."""
    own = env_id.removeprefix(f"{NAMESPACE}/") in env_ids()  # others have no map, and are not imported to find out
    env = make(env_id, BATCH, seed, env_kwargs=env_kwargs) if own else None
    if not isinstance(env, Navigation | HazardField):
        if env is not None:
            env.close()
        raise UsageError(f"run: {env_id} has no map; it must be a navigation task or HazardField-v0.")
    env.reset(seed=seed)
    return env


def _observe(env: Navigation | HazardField, poses: np.ndarray) -> np.ndarray:
    """Observations from these poses in the layout of the first environment."""
    count = env.num_envs
    filled = np.resize(poses, (count, 3))
    here = {name: np.repeat(rows, count, axis=0) for name, rows in env.layout(np.array([0])).items()}
    if isinstance(env, Navigation):
        env.set_layout(here | {"agent": filled})
    else:
        env.set_layout(here | {"position": filled[:, :2].copy(), "heading": filled[:, 2].copy()})
    return env.observe()[: len(poses)].astype(np.float32)


def intrinsic_cost_map(
    layout: LayoutViews, snapshot: MemorySnapshot, config: MemoryConfig, workers: int = 1
) -> np.ndarray:
    """The largest c^I at every position (SIDE, SIDE), over headings.

    Remembered states were met in motion, and an agent at rest is near none of them. So in each heading the agent gets
    the motion of the remembered state with the most similar view.
    """
    if snapshot.memory.size == 0:
        return np.zeros((SIDE, SIDE))
    remembered = _spread_states(snapshot)
    views = layout.views.copy()
    for heading in range(HEADINGS):
        nearest = _view_distances(layout, snapshot, remembered, heading).argmin(axis=1)
        views[:, heading, : layout.motion] = remembered[nearest, : layout.motion]
    flat = views.reshape(-1, views.shape[-1])
    cost, _ = snapshot.memory.intrinsic_cost(flat, snapshot.normalise, config, None, workers)
    return cost.reshape(SIDE, SIDE, HEADINGS).max(axis=-1)


def remembered_positions(layout: LayoutViews, snapshot: MemorySnapshot) -> np.ndarray:
    """Positions (m, 2) of the layout whose views are most like remembered states.

    A memory holds observations, of many layouts, and no positions. Each of up to MATCHED_STATES states is put at the
    position from which, in one of the headings, the view is nearest to its own.
    """
    if snapshot.memory.size == 0:
        return np.zeros((0, 2))
    remembered = _spread_states(snapshot)
    each = [_view_distances(layout, snapshot, remembered, heading) for heading in range(HEADINGS)]
    return layout.positions[np.min(each, axis=0).argmin(axis=0)]


def _spread_states(snapshot: MemorySnapshot) -> np.ndarray:
    """Up to MATCHED_STATES of the remembered states, evenly spread over the memory."""
    size = snapshot.memory.size
    return snapshot.memory.states[np.linspace(0, size - 1, min(MATCHED_STATES, size)).round().astype(int)]


def _view_distances(layout: LayoutViews, snapshot: MemorySnapshot, remembered: np.ndarray, heading: int) -> np.ndarray:
    """Squared distances (position, state) between normalised views, without the entries of motion."""
    here = snapshot.normalise(layout.views[:, heading])[:, layout.motion :]
    return cdist(here, snapshot.normalise(remembered)[:, layout.motion :], "sqeuclidean")
