"""A job as a process of its own: what it is told, how it ended and why. The same here and on a cluster's machines."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from flashbulb.config import Config
from flashbulb.algorithms.registry import configure
from flashbulb.storage.run_directory import SPACES_FILE as FILE  # the last thing that a run writes before its first iteration
from flashbulb.studies.plan import flat


class Ending(NamedTuple):
    """How a process ended. One that was killed may be started again; one that failed would fail again."""

    kind: str  # finished, stopped, failed, killed
    reason: str = ""


def start(config: Config, run: Path, log: Path) -> subprocess.Popen[bytes]:
    """Begin the run, or go on with it where it is there already."""
    words = command(config, run)
    with log.open("ab") as output:
        output.write(f"\nflashbulb {shlex.join(words)}\n".encode())
        output.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "flashbulb.studies.parent_watchdog", *words],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # a Ctrl-C is for us to hear and to pass on
        )


def command(config: Config, run: Path) -> list[str]:
    """What a person would type after `flashbulb`."""
    if (run / FILE).exists():
        return ["resume", str(run), *(["--threads", str(config.threads)] if config.threads else [])]
    _clear_stillborn(run)
    return ["train", config.algorithm, config.env, *options(config)]


def options(config: Config) -> list[str]:
    """All that differs from what the algorithm would do anyway."""
    usual = flat(configure(config.algorithm, config.env))
    words: list[str] = []
    for field, value in flat(config).items():
        if value != usual[field]:
            words += [f"--{field.replace('_', '-')}", *_words(value)]
    return words


def _words(value: Any) -> list[str]:
    if value is True:  # a flag
        return []
    return [str(item) for item in value] if isinstance(value, tuple | list) else [str(value)]


def _clear_stillborn(run: Path) -> None:
    """A process that was killed while it made its directory left something that can be neither begun nor resumed."""
    for name in (".lock", "config.json", "config.json.tmp", f"{FILE}.tmp"):
        (run / name).unlink(missing_ok=True)
    for path in (run / "checkpoints", run):
        if path.is_dir():
            path.rmdir()


def ending(code: int, log: Path) -> Ending:
    if code == 0:
        return Ending("finished")
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        return Ending("stopped", "was stopped")
    if code < 0:
        return Ending("killed", f"was killed by signal {-code} ({signal.Signals(-code).name})")
    return Ending("failed", last_words(log) or f"ended with exit code {code}")


def last_words(log: Path) -> str:
    """The sentence with which Flashbulb ended, or the last line of a traceback."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = [line for line in lines[-5:] if line.startswith("flashbulb: ")]
    return (said or lines or [""])[-1].removeprefix("flashbulb: ")
