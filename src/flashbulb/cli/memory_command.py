"""`flashbulb memory RUN`: what the memory makes the agent afraid of, seen from above."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class MemoryOptions:
    """Draw the intrinsic cost over the arena, with hazards and remembered states, at several times of the run."""

    run: tyro.conf.Positional[Path]
    """Directory of a run of a mice algorithm on a navigation task or on HazardField-v0."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write (default: memory.png in the run's directory)."""
    seed: int | None = None
    """Show a layout of this seed (default: for each time one in which the agent had just met danger)."""


def main(arguments: list[str]) -> int:
    options = parse(MemoryOptions, arguments, "flashbulb memory")
    if options.seed is not None and not 0 <= options.seed < 2**31:
        raise UsageError(f"seed: {options.seed} is not allowed; it must be a whole number of at least 0.")
    from flashbulb.analysis.memory_snapshots import load_memory_snapshots
    from flashbulb.plots.memory_map import draw_memory_maps, spread_snapshots
    from flashbulb.storage.run_directory import load_config

    path = options.output or options.run / "memory.png"
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UsageError(f"output: {str(path)!r} is not allowed; it must be the name of a .png, .pdf or .svg file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"output: {str(path)!r} is not allowed; its directory does not exist.")
    config = load_config(options.run)
    snapshots = spread_snapshots(load_memory_snapshots(options.run, config))
    draw_memory_maps(snapshots, config, options.seed, path)
    print(f"{path}: intrinsic cost after {', '.join(str(snapshot.done) for snapshot in snapshots)} iterations")
    return 0
