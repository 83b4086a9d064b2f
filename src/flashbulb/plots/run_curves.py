"""Return and cost of one run against environment steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def draw_curves(metrics: dict[str, np.ndarray], limit: float, title: str, path: Path) -> None:
    """Two panels over environment steps; the limit is the dashed line, iterations above it are marked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    reward_axes, cost_axes = figure.subplots(1, 2)
    steps, cost = metrics["steps"], metrics["cost"]
    reward_axes.plot(steps, metrics["return"], color="tab:blue")
    reward_axes.set(xlabel="environment steps", ylabel="episode return")
    cost_axes.plot(steps, cost, color="tab:orange")
    over = cost > limit
    cost_axes.plot(steps[over], cost[over], ".", color="tab:red", label="above the limit")
    cost_axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit {limit:g}")
    cost_axes.set(xlabel="environment steps", ylabel="episode cost", ylim=(0, None))
    cost_axes.legend(frameon=False)
    for axes in (reward_axes, cost_axes):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
