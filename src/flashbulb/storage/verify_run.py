"""What can be checked of a run without its environment: whether its files belong together and are undamaged."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.provenance import changes_since
from flashbulb.storage.resume_check import check_files, check_sealed_rows
from flashbulb.storage.run_directory import RunDirectory, load_config, load_spaces


class Verdict(NamedTuple):
    """What is wrong, what is worth knowing, and what was read."""

    problems: list[str]
    notes: list[str]
    rows: int
    files: int


def verify(run: Path) -> Verdict:
    """Check settings, spaces, rows, checkpoints and memories of a run."""
    directory, problems, files = RunDirectory(run), [], 0
    load_config(run)  # without it there is no run
    rows = sealed = 0
    try:
        load_spaces(run)
        rows = check_files(directory)
    except UsageError as error:
        problems.append(str(error))
    for folder, kind in ((directory.checkpoints, "checkpoint"), (run / "memories", "memory")):
        checkpoints = Checkpoints(folder, kind)
        for done in checkpoints.iterations():
            path = checkpoints.path(done)
            try:
                file = checkpoints.load(path)
                check_sealed_rows(directory, file, path.name)
            except UsageError as error:
                problems.append(str(error).removesuffix("; name another one."))
                continue
            files += 1
            sealed = max(sealed, done if "rows" in file.about else 0)
    return Verdict(list(dict.fromkeys(problems)), _notes(directory, rows, sealed), rows, files)


def _notes(directory: RunDirectory, rows: int, sealed: int) -> list[str]:
    notes = [f"started with {change}" for change in changes_since(directory.path)]
    if Checkpoints(directory.checkpoints).identity is None:
        notes.append("begun before runs had ids: whether its files belong together cannot be checked")
    if rows > sealed:
        notes.append(f"the last {rows - sealed} rows of metrics.csv are sealed by no good checkpoint")
    return notes
