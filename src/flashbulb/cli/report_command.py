"""`flashbulb report STUDY_OR_RUNS...`: a report on studies and runs as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class ReportOptions:
    """Write one HTML page that needs no network.

    It shows learning curves with intervals and the cost limit, a table of results, the bias of the cost critic, beta and
    the size of the memory, CPO's cases, and replays of evaluation episodes over a map of the intrinsic cost.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Studies, directories of runs, or runs."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """File to write."""
    episodes: int = 2
    """Episodes to record for each task and algorithm, with the newest checkpoint of its first seed (0: none)."""
    title: str | None = None
    """Title of the page (default: the study's name, or the algorithms and tasks)."""


def main(arguments: list[str]) -> int:
    options = parse(ReportOptions, arguments, "flashbulb report")
    if not options.runs:
        raise UsageError("runs: none named; say `flashbulb report STUDY_OR_RUNS...`.")
    if not 0 <= options.episodes <= 20:
        raise UsageError(f"episodes: {options.episodes} is not allowed; it must be a whole number from 0 to 20.")
    if options.output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"output: {str(options.output)!r} is not allowed; it must be the name of a .html file.")
    if not options.output.absolute().parent.is_dir():
        raise UsageError(f"output: {str(options.output)!r} is not allowed; its directory does not exist.")
    from rich.console import Console
    from rich.markup import escape

    from flashbulb.report.page import write_report

    # This can take a minute per task; a terminal shows the current step.
    with Console(stderr=True).status("") as line:
        size = write_report(
            list(options.runs), options.output, options.episodes, options.title, lambda text: line.update(escape(text))
        )
    print(f"{options.output} ({size / 1e6:.1f} MB)")
    return 0
