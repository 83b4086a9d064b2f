"""Ctrl-C and SIGTERM: the loop finishes its iteration, so that what it leaves is exactly what a resumed run needs."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Wish:
    """Which signal asked the loop to stop, if one did."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.signal or 0)


_outer: list[Wish] = []


@contextlib.contextmanager
def graceful_stop() -> Iterator[Wish]:
    """While inside, the first signal is a wish and the second does what it always did: it stops at once.

    Python delivers signals to the main thread only; in any other one nothing changes. Inside another one the wish is
    that of the outer one: the command line asks for it before it imports JAX, whose import can lose an interrupt.
    """
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    if _outer:
        yield _outer[-1]
        return

    def note(number: int, frame: FrameType | None) -> None:
        wish.signal = number
        restore()
        # Not print: it may be in the middle of printing.
        os.write(2, b"\nStopping after this iteration; once more to stop at once.\n")

    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    for number in SIGNALS:
        signal.signal(number, note)
    _outer.append(wish)
    try:
        yield wish
    finally:
        _outer.pop()
        restore()
