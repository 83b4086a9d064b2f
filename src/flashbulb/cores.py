"""What this process may use. Cores: the affinity mask counts, so SLURM, taskset and containers are respected."""

from __future__ import annotations

import os


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def most_bytes() -> int:
    """The largest file or array that is read: a quarter of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def thread_count(threads: int | None, limit: int | None = None) -> int:
    """The number of threads asked for (default: one per usable core), at most `limit`."""
    count = threads or len(usable_cores())
    return count if limit is None else min(count, limit)
