"""`flashbulb plot RUN...`: learning curves of one run or many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class PlotOptions:
    """Draw return and cost over steps, the limit dashed.

    Seeds of the same algorithm and task become an interquartile mean with its 95 % bootstrap band, algorithms colours,
    tasks rows.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Directories of runs."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("curves.png")
    """File to write; its ending decides the format (png, pdf, svg)."""


def main(arguments: list[str]) -> int:
    options = parse(PlotOptions, arguments, "flashbulb plot")
    if not options.runs:
        raise UsageError("runs: none named; say `flashbulb plot RUN...`.")
    from flashbulb.plots.learning_curves import draw_comparison

    draw_comparison(list(options.runs), options.output)
    print(options.output)
    return 0
