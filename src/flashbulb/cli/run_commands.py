"""Commands that show runs: runs, plot, memory and report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Interval
from tyro.conf import Positional, arg

from flashbulb.cli.options import parse_options, wide_console
from flashbulb.errors import UsageError
from flashbulb.validation import refusal


@dataclass(frozen=True)
class RunsOptions:
    """List runs with their status, and the return and cost of the last tenth of their iterations."""

    directory: Annotated[Path, Positional] = Path("runs")
    """Directory that contains the runs."""


def runs_command(arguments: list[str]) -> int:
    """`flashbulb runs`: one line per run."""
    options = parse_options(RunsOptions, arguments, "flashbulb runs")
    from rich.markup import escape
    from rich.table import Table

    from flashbulb.cost_limits import limit_text
    from flashbulb.shown_text import note_all, printable
    from flashbulb.storage.run_list import list_runs

    if options.directory == RunsOptions.directory and not options.directory.exists():  # nobody named it
        print("No runs here yet; `flashbulb train` makes the first.")
        return 0
    listed, left_out = list_runs(options.directory)
    note_all(left_out)
    if not listed:
        print(f"No runs in {options.directory}.")
        return 0
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("run", "algorithm", "task", "status"):
        table.add_column(title, overflow="fold")
    for title in ("steps", "return", "cost", "limit", "violated"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in listed:
        numbers = (
            f"{run.steps:,.0f}",
            _number(run.returns, ".2f"),
            ", ".join(f"{name} {cost:.2f}" for name, cost in run.costs.items()) or _number(run.cost, ".2f"),
            limit_text(run.config.cost_limit),
            _number(run.violation_rate, ".0%"),
        )
        names = (run.name, run.config.algorithm, run.config.env, run.status)
        table.add_row(*(escape(printable(name)) for name in names), *numbers)
    wide_console().print(table)
    return 0


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


@dataclass(frozen=True)
class PlotOptions:
    """Draw return and cost over steps, with the limit dashed.

    Seeds of one algorithm and task become an interquartile mean with its 95 % interval, or with the range of two
    seeds; algorithms become colours, tasks rows. Runs with other settings or limits are curves of their own.
    """

    runs: Annotated[tuple[Path, ...], Positional]
    """Directories of runs."""
    output: Annotated[Path, arg(aliases=["-o"])] = Path("curves.png")
    """File to write; its suffix decides the format (png, pdf, svg)."""


def plot_command(arguments: list[str]) -> int:
    """`flashbulb plot RUN...`: learning curves."""
    options = parse_options(PlotOptions, arguments, "flashbulb plot")
    if not options.runs:
        raise UsageError("runs: none named; say `flashbulb plot RUN...`.")
    from flashbulb.plots.learning_curves import draw_comparison

    draw_comparison(list(options.runs), options.output)
    print(options.output)
    return 0


@dataclass(frozen=True)
class MemoryOptions:
    """Draw the intrinsic cost over the arena, with hazards and remembered states, at several times of the run."""

    run: Annotated[Path, Positional]
    """Directory of a run of a mice algorithm on a navigation task or on HazardField-v0."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write (default: memory.png in the run's directory)."""
    seed: Annotated[int | None, Interval(ge=0, lt=2**31)] = None
    """Show the layout of this seed (default: for each time one in which the agent had just been unsafe)."""
    cost: str | None = None
    """Of a run with several costs, the one whose memory is shown (default: the first)."""


def memory_command(arguments: list[str]) -> int:
    """`flashbulb memory RUN`: map of the intrinsic cost."""
    options = parse_options(MemoryOptions, arguments, "flashbulb memory")
    from flashbulb.analysis.memory_snapshots import load_memory_snapshots
    from flashbulb.plots.memory_map import draw_memory_maps, spread_snapshots
    from flashbulb.storage.run_directory import load_config
    from flashbulb.storage.safe_files import refuse_link

    path = options.output or options.run / "memory.png"
    if options.output is None:
        refuse_link(path)
    _check_output(path, (".png", ".pdf", ".svg"), "a .png, .pdf or .svg file")
    config = load_config(options.run)
    snapshots = spread_snapshots(load_memory_snapshots(options.run, config, options.cost))
    draw_memory_maps(snapshots, config, options.seed, path)
    print(f"{path}: intrinsic cost after {', '.join(str(snapshot.done) for snapshot in snapshots)} iterations")
    return 0


@dataclass(frozen=True)
class ReportOptions:
    """Write one HTML page that needs no network.

    It has curves with bands and the limit, the table of results, the critic's bias, beta and the memory, CPO's cases,
    and replays of evaluation episodes with a map of the intrinsic cost.
    """

    runs: Annotated[tuple[Path, ...], Positional]
    """Studies, directories of runs, or runs."""
    output: Annotated[Path, arg(aliases=["-o"])] = Path("report.html")
    """File to write."""
    episodes: Annotated[int, Interval(ge=0, le=20)] = 2
    """Episodes to record for each task and algorithm, with the newest checkpoint of its first seed (0: none)."""
    title: str | None = None
    """Title of the page (default: the study's name, or the algorithms and tasks)."""


def report_command(arguments: list[str]) -> int:
    """`flashbulb report STUDY_OR_RUNS...`: one page about runs."""
    options = parse_options(ReportOptions, arguments, "flashbulb report")
    if not options.runs:
        raise UsageError("runs: none named; say `flashbulb report STUDY_OR_RUNS...`.")
    _check_output(options.output, (".html", ".htm"), "a .html file")
    from rich.console import Console
    from rich.markup import escape

    from flashbulb.report.page import write_report
    from flashbulb.shown_text import printable

    # Recording can take a minute for each task; a terminal shows the current step meanwhile.
    with Console(stderr=True).status("") as line:
        size = write_report(
            list(options.runs),
            options.output,
            options.episodes,
            options.title,
            lambda text: line.update(escape(printable(text))),
        )
    print(f"{options.output} ({size / 1e6:.1f} MB)")
    return 0


def _check_output(path: Path, suffixes: tuple[str, ...], kind: str) -> None:
    if path.suffix.lower() not in suffixes:
        raise refusal("output", str(path), f"the name of {kind}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"output: {str(path)!r} is not allowed; its directory does not exist.")
