"""How many cores this process may use."""

from __future__ import annotations

import os


def usable_cores() -> list[int]:
    """The cores that this process is allowed to use, which may be fewer than the machine has (SLURM, taskset)."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def thread_count(threads: int | None, limit: int | None = None) -> int:
    """Threads to use: as many as asked for (default: the usable cores), but at most `limit`."""
    count = threads or len(usable_cores())
    return count if limit is None else min(count, limit)
