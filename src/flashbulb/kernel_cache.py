"""Numba's cache filled by a second process, for the first run after an installation.

Numba compiles one function at a time in a process. Where there are two cores, a helper process compiles the learner's
functions into the cache on disk while this process compiles the task's. Whoever needs such a function waits for the
helper first (`wait_for_helper`) and then finds it in the cache; without a helper, or if it failed, the function
is compiled as ever.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

PATIENCE = 120.0  # seconds after which a helper is given up

_lock = threading.Lock()
_helper: subprocess.Popen[bytes] | None = None


def is_cached(function: Any) -> bool:
    """Whether Numba's cache has anything of a compiled function, or there is no cache to fill."""
    folder = function.stats.cache_path
    name = f"{Path(function.py_func.__code__.co_filename).stem}.{function.py_func.__qualname__}-*.nbi"
    return folder is None or any(Path(folder).glob(name))


def start_helper(module: str, *arguments: str) -> None:
    """Run a module in a process of its own. It has to end as soon as its standard input does: that of a process whose
    parent was killed ends, too."""
    global _helper
    with _lock:
        if _helper is None:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            command = [sys.executable, "-m", module, *arguments]
            try:
                _helper = subprocess.Popen(command, stdin=subprocess.PIPE, **quiet)  # type: ignore[call-overload]
            except OSError:
                return  # no more processes are allowed; this one compiles everything itself
            atexit.register(end_helper)


def wait_for_helper() -> None:
    """Return when no helper is at work any more."""
    if _helper is not None:
        with _lock:
            _end(PATIENCE)


def end_helper() -> None:
    """Stop a helper that is still at work."""
    with _lock:
        _end(0)


def _end(patience: float) -> None:
    global _helper
    if _helper is None:
        return
    try:
        _helper.wait(patience)
    except subprocess.TimeoutExpired:
        _helper.kill()
        _helper.wait()
    if _helper.stdin is not None:
        _helper.stdin.close()
    _helper = None
