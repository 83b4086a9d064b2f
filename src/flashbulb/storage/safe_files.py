"""Reads and writes of files in a run directory, which a stranger may have filled.

Writes replace a name and never follow a symbolic link to somewhere else. Reads refuse what is no ordinary file, such as
a pipe, on which a reader would wait for ever, and what would fill the memory.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from flashbulb.cores import most_bytes

SMALL = 2**24  # bytes of a JSON file, at most


def write_whole(path: Path, data: bytes) -> None:
    """Write a temporary file, flush it, rename it, flush the directory: a reader sees the old file or the new one, even
    after a loss of power."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(new_file(temporary), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_directory(path.parent)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_regular(path: Path, limit: int | None = None) -> bytes:
    """The content of an ordinary file of at most `limit` bytes (default: a quarter of the memory); else an OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        most = limit or most_bytes()
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, more than {most:,}", str(path))
        return file.read()


def read_json(path: Path) -> Any:
    """The content of a JSON file; OSError or ValueError if there is none."""
    try:
        return json.loads(read_regular(path, SMALL))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def new_file(path: Path) -> int:
    """A descriptor of a new file, for reading and writing; refused if the name is taken, by whatever."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def refuse_link(path: Path) -> None:
    """Refuse to write to a name in a run's directory that leads elsewhere."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link; name another file with -o", str(path))


def existing_for_writing(path: Path) -> int:
    """A descriptor of an existing ordinary file, for reading and writing; a symbolic link is refused."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return handle
