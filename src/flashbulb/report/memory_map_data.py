"""The flashbulb memory as a map: the intrinsic cost over the arena of an episode, and what is remembered there."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashbulb.analysis.intrinsic_map import intrinsic_cost_map, map_env, observe_layout, remembered_positions
from flashbulb.analysis.memory_snapshots import MemorySnapshot
from flashbulb.config import Config
from flashbulb.envs import State
from flashbulb.report.packing import points, track

MAPS = 4  # of an episode, at most: each takes about a second


class Fears:
    """Looks around in worlds as they were, with the eyes of an agent that remembers."""

    def __init__(self, config: Config, kept: MemorySnapshot) -> None:
        self.config, self.kept = config, kept
        self.env = map_env(config.env, 0)

    def __enter__(self) -> Fears:
        return self

    def __exit__(self, *_: object) -> None:
        self.env.close()

    def maps(self, moments: list[tuple[int, State]]) -> list[dict[str, Any]]:
        """What is seen includes the goal, so that a new goal makes a new map; of many goals, some evenly chosen."""
        some = np.unique(np.linspace(0, len(moments) - 1, min(MAPS, len(moments))).round().astype(int))
        return [self._map(*moments[k]) for k in some]

    def _map(self, frame: int, state: State) -> dict[str, Any]:
        self.env.set_state(state, np.array([0]))
        arena = observe_layout(self.env)
        heat = intrinsic_cost_map(arena, self.kept, self.config.memory, self.config.threads or 1)
        places = np.unique(remembered_positions(arena, self.kept), axis=0)
        return {"frame": frame, "heat": track(heat), "dots": points(places)}
