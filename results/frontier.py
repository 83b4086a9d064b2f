"""Return against cost of all algorithms: `python -m results.frontier OUTPUT.png TASK:STEPS...`.

A panel per task, over the last tenth of each run: a small dot per seed, the mean of an algorithm large. Those whose
cost is above twice the limit are named with their numbers instead of drawn. Variants of an algorithm are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from flashbulb.plots.learning_curves import choose_colours, new_figure, save_figure
from results.tables import LIMIT, Row, column, gather

MARKERS = "os^DvP*X<>"


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="Return against cost of all algorithms.")
    parser.add_argument("output", type=Path)
    parser.add_argument("places", nargs="+", help="TASK:STEPS")
    options = parser.parse_args(arguments or None)
    places = [(task, int(float(steps))) for task, _, steps in (place.partition(":") for place in options.places)]
    groups: dict[tuple[str, int], dict[str, dict[int, Row]]] = {place: {} for place in places}
    for cell, seeds in sorted(gather().items()):
        if (cell.task, cell.steps) in groups and all(row["algorithm"] == cell.label for row in seeds.values()):
            groups[cell.task, cell.steps][cell.label] = seeds
    colours = choose_colours({label: label for group in groups.values() for label in sorted(group)})
    used = [*colours.values()]  # there are fewer colours than algorithms: of one colour, each has its own marker
    markers = {
        label: MARKERS[used[:n].count(colour) % len(MARKERS)] for n, (label, colour) in enumerate(colours.items())
    }
    figure = new_figure(4.6 * len(places), 5.4)
    handles = {}
    for axes, (place, group) in zip(figure.subplots(1, len(places), squeeze=False)[0], groups.items(), strict=True):
        beyond: list[str] = []
        for label, seeds in group.items():
            cost, returns = column(seeds, "cost"), column(seeds, "return")
            if cost.mean() > 2 * LIMIT:
                beyond.append(f"{label}: {returns.mean():,.0f} at {cost.mean():.0f}")
                continue
            style = {"color": colours[label], "marker": markers[label]}
            axes.scatter(cost, returns, s=12, alpha=0.6, linewidth=0, **style)
            handles[label] = axes.scatter(cost.mean(), returns.mean(), s=60, edgecolor="black", linewidth=0.6, **style)
        axes.axvline(LIMIT, color="black", linestyle="--", linewidth=1)
        axes.set(title=place[0], xlabel="episode cost, last tenth", ylabel="episode return, last tenth")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.text(0.02, 0.98, "\n".join(beyond), transform=axes.transAxes, fontsize=7, va="top")
    figure.legend([*handles.values()], [*handles], loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    save_figure(figure, options.output)


if __name__ == "__main__":
    main()
