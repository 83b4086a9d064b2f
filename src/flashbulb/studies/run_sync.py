"""Copies a run directory from one machine to another as it grows: only changed files, as plain bytes.

The source reads checkpoints before the metrics that lead to them, and the target writes them after. So the target can
be resumed at any time, whichever of the two machines fails.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import NamedTuple

from flashbulb.errors import RunError
from flashbulb.storage.safe_files import write_whole

LOCAL_FILES = (".lock",)  # meaningful on one machine only
PARTIAL_SUFFIX = ".tmp"
CHECKPOINTS = "checkpoints"


class FileChanges(NamedTuple):
    """Contents of new and changed files by their path in the run directory, and the paths of deleted files."""

    files: dict[str, bytes]
    deleted: tuple[str, ...]


NO_CHANGES = FileChanges({}, ())


class RunWatcher:
    """Finds what changed in a run directory since the last call of `changes`."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.known: dict[str, tuple[int, int]] = {}

    def changes(self) -> FileChanges:
        present = _list_files(self.run)
        files: dict[str, bytes] = {}
        for name in sorted(present, key=_checkpoints_first):
            if self.known.get(name) != present[name]:
                try:
                    files[name] = (self.run / name).read_bytes()
                except FileNotFoundError:  # an old checkpoint, deleted in the meantime
                    del present[name]
        deleted = tuple(set(self.known) - set(present))
        self.known = present
        return FileChanges(files, deleted)

    def has_new_checkpoint(self) -> bool:
        return any(name.startswith(CHECKPOINTS) and name not in self.known for name in _list_files(self.run))


def apply_changes(changes: FileChanges, run: Path) -> None:
    """Bring a copy of the run directory up to date."""
    for name in sorted(changes.files, key=_checkpoints_first, reverse=True):
        path = _inside(run, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, changes.files[name])
    for name in changes.deleted:
        _inside(run, name).unlink(missing_ok=True)


def _list_files(run: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time of every file that is to be copied."""
    found = {}
    for path in run.rglob("*"):
        if path.name in LOCAL_FILES or path.name.endswith(PARTIAL_SUFFIX) or not path.is_file():
            continue
        try:
            info = path.stat()
        except FileNotFoundError:
            continue
        found[path.relative_to(run).as_posix()] = (info.st_size, info.st_mtime_ns)
    return found


def _checkpoints_first(name: str) -> tuple[bool, str]:
    return not name.startswith(CHECKPOINTS), name


def _inside(run: Path, name: str) -> Path:
    """The file's path. The name comes from another machine, so paths outside the run directory are refused."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise RunError(f"a worker sent a file called {name!r}, which is not in the run's directory.")
    return run / relative
