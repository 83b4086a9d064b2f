"""Maps of the intrinsic cost at several times of a run, side by side on the scale that all maps have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from flashbulb.analysis.intrinsic_map import (
    HEAT_HIGH,
    HEAT_LOW,
    HEAT_POWER,
    LayoutViews,
    intrinsic_cost_map,
    map_env,
    observe_layout,
    remembered_positions,
)
from flashbulb.analysis.memory_snapshots import MemorySnapshot
from flashbulb.config import Config
from flashbulb.envs.navigation import render

MAX_PANELS = 4
TICKS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)


def spread_snapshots(snapshots: list[MemorySnapshot]) -> list[MemorySnapshot]:
    """As many as there are panels, evenly chosen, with the first and the last."""
    if len(snapshots) <= MAX_PANELS:
        return snapshots
    return [snapshots[round(k * (len(snapshots) - 1) / (MAX_PANELS - 1))] for k in range(MAX_PANELS)]


def draw_memory_maps(snapshots: list[MemorySnapshot], config: Config, seed: int | None, path: Path) -> None:
    """Each snapshot in the layout in which the agent had just paid most, or all in a layout of that seed."""
    env = map_env(config.env, seed or 0, config.env_kwargs)
    layouts: list[LayoutViews] = []
    try:
        for snapshot in snapshots:
            if seed is None:
                env.set_state(snapshot.env, np.array([0]))
            layouts.append(observe_layout(env))
    finally:
        env.close()
    pairs = list(zip(layouts, snapshots, strict=True))
    maps = [intrinsic_cost_map(layout, snapshot, config.memory, config.threads or 1) for layout, snapshot in pairs]
    scale = PowerNorm(HEAT_POWER, HEAT_LOW, HEAT_HIGH)
    figure = Figure(figsize=(3.6 * len(maps) + 0.9, 4.7), facecolor=render.PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for axes, (layout, snapshot), heat in zip(panels, pairs, maps, strict=True):
        image = render.draw_map(axes, layout.scene, heat, remembered_positions(layout, snapshot), scale)
        steps = snapshot.done * config.horizon * config.num_envs
        title = f"after {steps:,} steps: {snapshot.memory.size:,} states"
        axes.set_title(title, loc="left", color=render.INK, fontsize=9)
    bar = figure.colorbar(image, ax=list(panels), shrink=0.72, aspect=28, pad=0.01, ticks=TICKS)
    bar.set_label("intrinsic cost", color=render.INK, fontsize=9)
    render.quiet_bar(bar)
    where = "the most costly layout of each time" if seed is None else f"a layout of seed {seed}"
    title = f"Intrinsic cost of {config.algorithm} on {config.env} (seed {config.seed}), in {where}"
    figure.suptitle(title, color=render.INK, fontsize=12, fontweight="bold", x=0.01, ha="left")
    render.draw_key(figure, layouts[-1].scene, "view most like a remembered state")
    figure.savefig(path, dpi=140, facecolor=render.PAPER)
