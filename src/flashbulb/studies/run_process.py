"""Runs as processes: the command line of a run, why it ended, and a pool of such processes on this machine.

Ray workers start their runs in the same way (`ray_cluster.py`).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.config import Config, flat_settings
from flashbulb.cores import usable_cores
from flashbulb.storage.run_directory import SPACES_FILE  # the last file that a run writes before its first iteration
from flashbulb.studies.plan import Job, StudyPlan


class RunExit(NamedTuple):
    """How a process ended. A killed or stopped run can be resumed; a failed one would fail again."""

    status: Literal["finished", "stopped", "failed", "killed"]
    reason: str = ""


def start_run(config: Config, run: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a process that trains the run, or resumes it if the directory holds one."""
    arguments = run_command(config, run)
    with log.open("ab") as output:
        output.write(f"\nflashbulb {shlex.join(arguments)}\n".encode())
        output.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "flashbulb.studies.parent_watchdog", *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C goes to the study alone, which then stops its runs
        )


def run_command(config: Config, run: Path) -> list[str]:
    """The arguments of `flashbulb` that train or resume the run."""
    plugins = [word for plugin in config.plugins for word in ("--plugin", plugin)]
    if (run / SPACES_FILE).exists():
        words = ["resume", str(run), *plugins, *(["--threads", str(config.threads)] if config.threads else [])]
        return words + (["--env", config.env] if ":" in config.env else [])  # the study's own, not the directory's
    _remove_incomplete(run)
    return ["train", config.algorithm, config.env, *plugins, *run_options(config)]


def run_options(config: Config) -> list[str]:
    """Options for all settings that the algorithm uses and that differ from its defaults."""
    defaults = flat_settings(configure(config.algorithm, config.env))
    unused = get_algorithm(config.algorithm).unused_settings
    words: list[str] = []
    for field, value in flat_settings(config).items():
        if field.partition(".")[0] not in unused and value != defaults.get(field):
            part, _, name = field.partition(".")
            several = part == "cost_limit" and name  # a limit for each of several costs
            words += ["--cost-limit", f"{name}={value}"] if several else [_option_name(field, value), *_values(value)]
    return words


def _option_name(field: str, value: Any) -> str:
    """--part.field, or --part.no-field for a flag that is on by default."""
    *part, name = field.replace("_", "-").split(".")
    return "--" + ".".join([*part, f"no-{name}" if value is False else name])


def _values(value: Any) -> list[str]:
    if isinstance(value, bool):
        return []
    return [str(item) for item in value] if isinstance(value, tuple | list) else [str(value)]


def _remove_incomplete(run: Path) -> None:
    """Remove a directory whose process was killed while creating it: it can be neither trained nor resumed."""
    for path in (run / ".lock", run / "config.json", *run.glob("*.tmp")):
        path.unlink(missing_ok=True)
    for path in (run / "checkpoints", run):
        if path.is_dir():
            path.rmdir()


def run_exit(code: int, log: Path) -> RunExit:
    """Interpret an exit code; the reason of a failure is the last message in the log."""
    if code == 0:
        return RunExit("finished")
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        return RunExit("stopped", "was stopped")
    if code < 0:
        return RunExit("killed", f"was killed by signal {-code} ({signal.Signals(-code).name})")
    return RunExit("failed", _last_message(log) or f"ended with exit code {code}")


def _last_message(log: Path) -> str:
    """Flashbulb's own error message if there is one, else the last line of the traceback."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    messages = [line for line in lines[-5:] if line.startswith("flashbulb: ")]
    return (messages or lines or [""])[-1].removeprefix("flashbulb: ")


class RunningJob(NamedTuple):
    job: Job
    process: subprocess.Popen[bytes]


class LocalPool:
    """Processes on this machine, one thread each.

    None is pinned to a core: two studies side by side would choose the same ones, and leave others idle.
    """

    def __init__(self, plan: StudyPlan, processes: int | None = None) -> None:
        self.plan = plan
        self.size: int = processes or len(usable_cores())
        self.slots: dict[int, RunningJob] = {}

    def has_free_slot(self) -> bool:
        return len(self.slots) < self.size

    def start(self, job: Job) -> None:
        slot = min(set(range(self.size)) - set(self.slots))
        process = start_run(job.config, self.plan.run_path(job), self.plan.log_path(job))
        self.slots[slot] = RunningJob(job, process)

    def poll(self) -> list[tuple[Job, RunExit]]:
        ended = {slot: running for slot, running in self.slots.items() if running.process.poll() is not None}
        for slot, running in ended.items():
            _close_input(running.process)
            del self.slots[slot]
        return [(job, run_exit(process.returncode, self.plan.log_path(job))) for job, process in ended.values()]

    def stop(self) -> None:
        for _, process in self.slots.values():
            process.terminate()

    def close(self) -> None:
        """Kill the processes that still run."""
        for _, process in self.slots.values():
            process.kill()
            process.wait()
            _close_input(process)


def _close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
