"""The lock of a run directory: one process writes, others can see that it does.

It is an flock, which belongs to the open file: other descriptors of the same file can be closed without losing it, as
they cannot with POSIX locks. A lock is worth nothing once its name leads to another file, so that is compared as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

TRIES, PAUSE = 10, 0.05  # another process may hold it for the moment of `is_locked`

_held: set[int] = set()  # descriptors of this process


def _close_in_child() -> None:
    """A forked process must not keep the lock alive when its parent has ended."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)


class RunLock:
    """A lock that this process may take; it ends with the process, however that ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Whether the lock is ours now; False if another process has it."""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.release()
                continue
            if self.is_ours():
                _held.add(self._descriptor)
                return True
            self.release()  # the file was replaced meanwhile
        return False

    def is_ours(self) -> bool:
        """Whether the name still leads to the file that we have locked."""
        try:
            return self._descriptor is not None and os.path.samestat(os.fstat(self._descriptor), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        if self._descriptor is not None:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock; nothing is created."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
