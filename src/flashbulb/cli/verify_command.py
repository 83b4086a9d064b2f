"""The command `flashbulb verify`: whether a run is as it was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from flashbulb.cli.options import parse_options


@dataclass(frozen=True)
class VerifyOptions:
    """Check that settings, spaces, rows and checkpoints of a run belong together and are as they were written.

    Nothing is executed or changed. It finds accidents; who can write the whole directory can also forge it.
    """

    run: Annotated[Path, Positional]
    """Directory of a run."""


def verify_command(arguments: list[str]) -> int:
    """`flashbulb verify RUN`: exit code 1 if something is damaged."""
    options = parse_options(VerifyOptions, arguments, "flashbulb verify")
    from flashbulb.shown_text import printable
    from flashbulb.storage.verify_run import verify

    verdict = verify(options.run)
    for note in verdict.notes:
        print(printable(f"Note: {note}."))
    for problem in verdict.problems:
        print(printable(f"Problem: {problem}"))
    if verdict.problems:
        return 1
    print(printable(f"{options.run} is whole: {verdict.rows} iterations, {verdict.files} checkpoints and memories."))
    return 0
