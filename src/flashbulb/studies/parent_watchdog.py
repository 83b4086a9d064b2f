"""`python -m flashbulb.studies.parent_watchdog train ...`: run Flashbulb, and stop it when its parent process ends.

The parent holds the other end of standard input open and writes nothing. When the parent ends, for whatever reason,
the operating system closes that pipe; the run then gets SIGTERM, writes a checkpoint and stops.

This is a module of its own because it must import nothing: the watchdog starts first, and JAX only after the command
line has set its environment variables.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def start_watchdog() -> None:
    threading.Thread(target=_terminate_at_end_of_input, daemon=True).start()


def _terminate_at_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    start_watchdog()
    runpy.run_module("flashbulb", run_name="__main__")
