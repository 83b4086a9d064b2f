"""Intrinsic cost over an arena at several times of a run, side by side on one scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from flashbulb.analysis.intrinsic_map import Arena, arena_env, fear, look_around, reminders
from flashbulb.analysis.memory_snapshots import MemorySnapshot
from flashbulb.config import Config
from flashbulb.envs.navigation import render

PANELS = 4  # at most, spread over what was kept


def chosen(kept: list[MemorySnapshot]) -> list[MemorySnapshot]:
    """As many as there are panels, evenly, the first and the last among them."""
    if len(kept) <= PANELS:
        return kept
    return [kept[round(k * (len(kept) - 1) / (PANELS - 1))] for k in range(PANELS)]


def draw_memories(memories: list[MemorySnapshot], config: Config, seed: int | None, path: Path) -> None:
    """Each in the layout in which the agent had just met most danger, or all in a layout of that seed."""
    env = arena_env(config.env, seed or 0)
    arenas: list[Arena] = []
    try:
        for kept in memories:
            if seed is None:
                env.set_state(kept.danger, np.array([0]))
            arenas.append(look_around(env))
    finally:
        env.close()
    maps = [fear(arena, kept, config.memory, config.threads or 1) for arena, kept in zip(arenas, memories, strict=True)]
    top = max(float(heat.max()) for heat in maps) or 1.0
    figure = Figure(figsize=(3.6 * len(maps) + 0.9, 4.7), facecolor=render.PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for axes, arena, kept, heat in zip(panels, arenas, memories, maps, strict=True):
        image = render.draw_map(axes, arena.scene, heat, reminders(arena, kept), top)
        steps = kept.done * config.horizon * config.num_envs
        axes.set_title(f"after {steps:,} steps: {kept.memory.size:,} states", loc="left", color=render.INK, fontsize=9)
    bar = figure.colorbar(image, ax=list(panels), shrink=0.72, aspect=28, pad=0.01)
    bar.set_label("intrinsic cost", color=render.INK, fontsize=9)
    render.quiet_bar(bar)
    where = "layouts in which danger was just met" if seed is None else "a layout that it never met"
    title = f"What {config.algorithm} fears on {config.env} (seed {config.seed}), in {where}"
    figure.suptitle(title, color=render.INK, fontsize=12, fontweight="bold", x=0.01, ha="left")
    render.draw_key(figure, arenas[-1].scene, "a place that looks like a remembered state")
    figure.savefig(path, dpi=140, facecolor=render.PAPER)
