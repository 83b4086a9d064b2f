"""Whether the files of a run allow it to go on. Only reads: a run that is refused stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import CheckpointFile, Damaged
from flashbulb.storage.csv_log import check_rows, row_iterations
from flashbulb.storage.run_directory import RunDirectory


def check_files(directory: RunDirectory) -> int:
    """How many iterations metrics.csv has; refused if a file has rows that no single process has written in order, or
    if a folder leads elsewhere."""
    for folder in (directory.checkpoints, directory.path / "memories"):
        if folder.is_symlink():
            raise UsageError(f"run: {folder} is a symbolic link, which is not allowed; it must be a directory.")
    iterations = row_iterations(directory.metrics)
    for row, iteration in enumerate(iterations):
        if iteration != row:
            raise UsageError(
                f"run: {directory.metrics} is damaged (row {row + 1} is of iteration {iteration}, not of {row}); "
                "put it back as it was."
            )
    for path in (directory.episodes, directory.timing):
        others = row_iterations(path)
        if others != sorted(others):
            raise UsageError(f"run: {path} is damaged (its iterations are not in order); put it back as it was.")
    return len(iterations)


def check_sealed_rows(directory: RunDirectory, file: CheckpointFile, name: str) -> None:
    """Refuse CSV files whose rows up to this checkpoint are not those that it was written with."""
    try:
        for path in (directory.metrics, directory.episodes, directory.timing):
            check_rows(path, file.about.get("rows", {}).get(path.name, {}), name)
    except (AttributeError, KeyError, TypeError):
        raise Damaged(f"checkpoint: {name} is damaged (its metadata are of another form); name another one.") from None


def require_beginning(directory: RunDirectory, rows: int, unusable: Sequence[int], checkpoint_every: int) -> None:
    """Refuse to begin again at iteration 0 a run that has had a checkpoint."""
    if unusable or rows > checkpoint_every:
        raise UsageError(
            f"run: {directory.path} has {rows} iterations in metrics.csv and no checkpoint that can be used; put one "
            "back, or train again under another name (nothing was changed)."
        )
