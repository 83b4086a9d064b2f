"""Algorithms beside each other on several tasks: `python -m results.matrix LABEL,LABEL... TASK:STEPS... [--transpose]`.

A row per task and a column per algorithm, as in `python -m results.matrix cpo,cup PointGoal1:1e7 Hopper:2e6`, or the
other way round. A cell has the share of iterations above the limit and the return of the last tenth, of each the mean
over seeds and in brackets the worst of them, then the number of seeds.
"""

from __future__ import annotations

import argparse

from results.tables import Cell, Row, column, gather, print_head, print_row


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="Algorithms beside each other on several tasks.")
    parser.add_argument("labels", type=lambda text: text.split(","))
    parser.add_argument("places", nargs="+", help="TASK:STEPS")
    parser.add_argument("--transpose", action="store_true", help="a row per algorithm")
    options = parser.parse_args(arguments or None)
    runs = gather()
    table = [["task", *(f"`{label}`" for label in options.labels)]]
    for task, _, steps in (place.partition(":") for place in options.places):
        cells = [Cell(task, label, int(float(steps))) for label in options.labels]
        table.append([cells[0].place, *(text_of(runs.get(cell, {})) for cell in cells)])
    if options.transpose:
        table = [[*row] for row in zip(*table, strict=True)]
        table[0][0] = "algorithm"
    print_head(*table[0])
    for row in table[1:]:
        print_row(*row)


def text_of(seeds: dict[int, Row]) -> str:
    if not seeds:
        return "-"
    rates, returns = 100 * column(seeds, "violation_rate"), column(seeds, "return")
    digits = 0 if returns.max() > 100 else 1
    if len(seeds) == 1:
        return f"{rates[0]:.0f} %, {returns[0]:,.{digits}f}, n = 1"
    worst = f"{rates.max():.0f}", f"{returns.min():,.{digits}f}"
    return f"{rates.mean():.0f} % ({worst[0]}), {returns.mean():,.{digits}f} ({worst[1]}), n = {len(seeds)}"


if __name__ == "__main__":
    main()
