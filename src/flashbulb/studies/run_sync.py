"""A run's directory sent from one machine to another, piece by piece, as plain bytes.

The sender reads checkpoints before the rows that they follow, and the receiver writes them after, so that whenever
either of them dies the receiver has a directory that can be resumed.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import NamedTuple

from flashbulb.errors import RunError
from flashbulb.storage.checkpoint import write_whole

LOCAL = (".lock",)  # of no use to anyone else
UNFINISHED = (".tmp",)
CHECKPOINTS = "checkpoints"


class Parcel(NamedTuple):
    """What changed since the last one: files by their path in the run's directory, and files that are gone."""

    files: dict[str, bytes]
    gone: tuple[str, ...]

    @property
    def has_checkpoint(self) -> bool:
        return any(name.startswith(CHECKPOINTS) for name in self.files)


class Sender:
    """Remembers what it has sent."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.sent: dict[str, tuple[int, int]] = {}

    def pack(self) -> Parcel:
        there = _listing(self.run)
        files: dict[str, bytes] = {}
        for name in sorted(there, key=_checkpoints_first):
            if self.sent.get(name) != there[name]:
                try:
                    files[name] = (self.run / name).read_bytes()
                except FileNotFoundError:  # an old checkpoint that has just made room
                    del there[name]
        gone = tuple(set(self.sent) - set(there))
        self.sent = there
        return Parcel(files, gone)

    def has_new_checkpoint(self) -> bool:
        return any(name.startswith(CHECKPOINTS) and name not in self.sent for name in _listing(self.run))


def unpack(parcel: Parcel, run: Path) -> None:
    for name in sorted(parcel.files, key=_checkpoints_first, reverse=True):
        path = _inside(run, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, parcel.files[name])
    for name in parcel.gone:
        _inside(run, name).unlink(missing_ok=True)


def _listing(run: Path) -> dict[str, tuple[int, int]]:
    """Files with size and time of change."""
    found = {}
    for path in run.rglob("*"):
        if path.name in LOCAL or path.name.endswith(UNFINISHED) or not path.is_file():
            continue
        try:
            about = path.stat()
        except FileNotFoundError:
            continue
        found[path.relative_to(run).as_posix()] = (about.st_size, about.st_mtime_ns)
    return found


def _checkpoints_first(name: str) -> tuple[bool, str]:
    return not name.startswith(CHECKPOINTS), name


def _inside(run: Path, name: str) -> Path:
    """Another machine names the file; it must not name one elsewhere."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise RunError(f"a worker sent a file called {name!r}, which is not in the run's directory.")
    return run / relative
