"""A worker process: runs a stretch of foreign environments for `vectorise.ProcessEnvPool` until its line closes.

python -m flashbulb.envs.env_worker FILE_DESCRIPTOR SOURCE FIRST END
"""

from __future__ import annotations

import contextlib
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from flashbulb.envs.env_pool import LocalEnvPool
from flashbulb.errors import RunError, UsageError


def main(descriptor: int, source: str, first: int, end: int) -> None:
    # Ctrl-C and SIGTERM reach the whole group; the parent finishes its step and needs us for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line = Connection(descriptor)
    try:
        crew = LocalEnvPool(source, range(first, end))
    except (UsageError, RunError) as error:
        line.send(("error", _plain(error)))
        return
    line.send(("done", crew.facts))
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            order, *arguments = line.recv()
            line.send(_obey(crew, order, arguments))
    crew.close()


def _obey(crew: LocalEnvPool, order: str, arguments: list[Any]) -> tuple[str, Any]:
    try:
        return "done", getattr(crew, order)(*arguments)
    except (UsageError, RunError) as error:
        return "error", _plain(error)


def _plain(error: Exception) -> Exception:
    """Without causes, which may be of classes that only this process can import."""
    return type(error)(*error.args)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
