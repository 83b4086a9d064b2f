"""Which tasks there are: id -> factory, filled from data by the task modules, imported only when asked."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable

from flashbulb.cmdp.contract import CMDP
from flashbulb.errors import UsageError

# Task modules register themselves here on import; ids are listed so that none need be imported to know them.
_VELOCITY = "flashbulb.cmdp.velocity"
_NAVIGATION = "flashbulb.cmdp.navigation"
_HAZARD_FIELD = "flashbulb.cmdp.hazard_field"

_MODULE_OF: dict[str, str] = {"HazardField-v0": _HAZARD_FIELD} | {
    f"Safety{robot}Velocity-v1": _VELOCITY
    for robot in ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d", "Swimmer")
}
_MODULE_OF |= {
    f"Safety{robot}{task}-v0": _NAVIGATION for robot in ("Point", "Car") for task in ("Goal1", "Circle1", "Button1")
}

Factory = Callable[[str, int, int, int | None], CMDP]


def env_ids() -> list[str]:
    """All known task ids."""
    return list(_MODULE_OF)


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """The known names that look most like `name`, for an error message; all of them when none does."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=count, cutoff=0.4)
    lowered = {k.lower(): k for k in known}
    if not close:
        close = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=count, cutoff=0.3)]
    return ", ".join(close or known)


def make(env_id: str, num_envs: int = 20, seed: int = 0, threads: int | None = None) -> CMDP:
    """A batch of `num_envs` members of a task, stepped by `threads` threads (default: all cores)."""
    if env_id not in _MODULE_OF:
        raise UsageError(f"env: unknown task {env_id!r}; the nearest known ids are {nearest(env_id, _MODULE_OF)}.")
    for field, value in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise UsageError(f"{field}: {value!r} is not allowed; it must be a whole number of at least 1.")
    module = importlib.import_module(_MODULE_OF[env_id])
    env: CMDP = module.make(env_id, int(num_envs), int(seed), threads)
    return env
