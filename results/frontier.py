"""Return against cost of every run in some tables of measures: `python -m results.frontier OUTPUT.png MEASURES.csv...`.

One panel per task that has runs of three labels or more, over the last tenth of each run; a small dot per run, the
mean of a label large. All tables must be of runs of one length; where two have the same seed, the later one counts.
Learners whose cost is above twice the limit are named with their numbers instead of drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from flashbulb.plots.learning_curves import choose_colours
from results.tables import LIMIT, rows_of

MARKERS = "os^DvP*X<>"


def main(output: str, *tables: str) -> None:
    rows = [row for table in tables for row in rows_of(Path(table))]
    rows = [*{(row["task"], row["label"], row["seed"]): row for row in rows}.values()]
    labels = {task: {row["label"] for row in rows if row["task"] == task} for task in (row["task"] for row in rows)}
    tasks = [task for task, own in labels.items() if len(own) >= 3]
    colours = choose_colours({row["label"]: row["algorithm"] for row in rows})
    used = [*colours.values()]  # there are fewer colours than algorithms: of one colour, each has its own marker
    markers = {
        label: MARKERS[used[:n].count(colour) % len(MARKERS)] for n, (label, colour) in enumerate(colours.items())
    }
    figure = Figure(figsize=(4.6 * len(tasks), 5), layout="constrained")
    handles = {}
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        beyond: list[str] = []
        for label, colour in colours.items():
            points = [(float(r["cost"]), float(r["return"])) for r in rows if (r["task"], r["label"]) == (task, label)]
            if points:
                cost, returns = zip(*points, strict=True)
                mean = sum(cost) / len(cost), sum(returns) / len(returns)
                if mean[0] > 2 * LIMIT:
                    beyond.append(f"{label}: {mean[1]:,.0f} at {mean[0]:.0f}")
                    continue
                style = {"color": colour, "marker": markers[label]}
                axes.scatter(cost, returns, s=12, alpha=0.6, linewidth=0, **style)
                handles[label] = axes.scatter(*mean, s=60, edgecolor="black", linewidth=0.6, **style)
        axes.axvline(LIMIT, color="black", linestyle="--", linewidth=1)
        axes.set(title=task, xlabel="episode cost, last tenth", ylabel="episode return, last tenth")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.text(0.02, 0.02, "\n".join(beyond), transform=axes.transAxes, fontsize=7)
    figure.legend([*handles.values()], [*handles], loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(output, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
