"""`python -m flashbulb.studies.parent_watchdog train ...`: Flashbulb in a process that does not outlive the one that started it.

Whoever starts it keeps the other end of its standard input open and writes nothing. When that end closes, which the
operating system sees to however its holder ends, the run is asked to stop as with SIGTERM and writes a checkpoint.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def hold() -> None:
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    hold()
    runpy.run_module("flashbulb", run_name="__main__")
