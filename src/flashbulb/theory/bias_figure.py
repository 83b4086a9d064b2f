"""Bias of three cost critics over updates, against the exact value: the tabular counterpart of Figures 2 and 5."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.config import BalanceConfig, MemoryConfig
from flashbulb.theory.example_cmdps import cliff
from flashbulb.theory.q_learning import LearningSchedule, Trace, learn_with_intrinsic_cost, learn_with_twin_maximum

SEEDS = 8
NOISE = 0.1
# The step size does not vanish, as for a network, so the noise and its bias remain.
SCHEDULE = LearningSchedule(iterations=500, steps=500, power=0.7, floor=0.1)
KERNEL = MemoryConfig(embedding=0, xi=0.1)

Learner = Callable[[np.random.Generator], Trace]


def _intrinsic(balance: BalanceConfig) -> Learner:
    return lambda rng: learn_with_intrinsic_cost(cliff(), balance, KERNEL, SCHEDULE, NOISE, rng)


def _twin(shared: float) -> Learner:
    return lambda rng: learn_with_twin_maximum(cliff(), SCHEDULE, NOISE, shared, rng)


# Colours of Okabe and Ito, safe for colour-blind readers; line styles distinguish variants of one method.
CURVES: dict[str, tuple[Learner, str, str]] = {
    r"$Q_C$": (_intrinsic(BalanceConfig(initial=0.0, rate=0.0)), "#000000", "-"),
    "twin maximum, independent noise": (_twin(0.0), "#0072B2", "-"),
    "twin maximum, 90 % shared noise": (_twin(0.9), "#0072B2", "--"),
    r"$Q_C^{EI}$ with $\gamma^n$": (_intrinsic(BalanceConfig(initial=0.3)), "#D55E00", "-"),
    r"$Q_C^{EI}$ without $\gamma^n$": (_intrinsic(BalanceConfig(initial=0.3, discount=1.0)), "#D55E00", "--"),
}


def learn_curves() -> dict[str, list[Trace]]:
    """Learning curves of every critic, with the same seeds."""
    return {name: [learner(np.random.default_rng(i)) for i in range(SEEDS)] for name, (learner, *_) in CURVES.items()}


def _draw_curve(axes: Any, runs: list[np.ndarray], colour: str, style: str, label: str) -> None:
    """Plot the mean over seeds and its 95 % interval."""
    mean, error = np.mean(runs, 0), 1.96 * np.std(runs, 0, ddof=1) / np.sqrt(len(runs))
    updates = (1 + np.arange(len(mean))) * SCHEDULE.steps
    axes.plot(updates, mean, style, color=colour, linewidth=1.6, label=label)
    axes.fill_between(updates, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)


def draw_bias_curves(path: Path) -> dict[str, float]:
    """Draw the figure; return the mean bias of each curve over the last fifth of the updates, over all states."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    everywhere, unsafe, factor = figure.subplots(1, 3)
    traces = learn_curves()
    for name, (_, colour, style) in CURVES.items():
        _draw_curve(everywhere, [trace.bias for trace in traces[name]], colour, style, name)
        _draw_curve(unsafe, [trace.bias_unsafe for trace in traces[name]], colour, style, name)
        if name.startswith("$Q_C^{EI}"):
            _draw_curve(factor, [trace.beta for trace in traces[name]], colour, style, name)
    everywhere.set(title="all states", ylabel="estimate minus exact $Q^*_C$")
    unsafe.set(title="states with a cost")
    factor.set(title=r"balancing factor $\beta_n$", ylim=(0, 0.35))
    for axes in (everywhere, unsafe, factor):
        axes.set(xlabel="updates", xlim=(0, SCHEDULE.iterations * SCHEDULE.steps))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
        axes.set_xticks([0, 100_000, 200_000])
    for axes in (everywhere, unsafe):
        axes.axhline(0, color="grey", linestyle=":", linewidth=1.2)
        axes.set_ylim(-0.6, 0.4)
    handles, labels = everywhere.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.suptitle("Bias of the cost critic on the cliff: greedy Q-learning with noisy values", fontsize=11)
    figure.savefig(path, dpi=130)
    last = SCHEDULE.iterations // 5
    return {name: float(np.mean([trace.bias[-last:] for trace in runs])) for name, runs in traces.items()}
