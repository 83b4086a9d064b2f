"""`flashbulb resume RUN`: go on with a run as if it had never stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class ResumeOptions:
    """Continue from the newest good checkpoint to the steps that the run was started for; the result is bit for bit
    that of a run which was never interrupted."""

    run: tyro.conf.Positional[Path]
    """Directory of a run."""
    threads: int | None = None
    """Threads for physics and nearest neighbours (default: as the run was started); results do not depend on it."""


def main(arguments: list[str]) -> int:
    options = parse(ResumeOptions, arguments, "flashbulb resume")
    if options.threads is not None and options.threads < 1:
        raise UsageError(f"threads: {options.threads} is not allowed; it must be a whole number of at least 1.")
    from flashbulb.training.loop import resume

    resume(options.run, threads=options.threads)
    return 0
