"""Which tasks there are: id -> factory, filled from data by the task modules, imported only when asked."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Callable, Iterable
from typing import Literal

from flashbulb.envs.base import CostVectorEnv
from flashbulb.errors import UsageError

# Task modules register themselves here on import; ids are listed so that none need be imported to know them.
_VELOCITY = "flashbulb.envs.velocity"
_NAVIGATION = "flashbulb.envs.navigation"
_HAZARD_FIELD = "flashbulb.envs.hazard_field"

_MODULE_OF: dict[str, str] = {"HazardField-v0": _HAZARD_FIELD} | {
    f"Safety{robot}Velocity-v1": _VELOCITY
    for robot in ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d", "Swimmer")
}
_MODULE_OF |= {
    f"Safety{robot}{task}{level}-v0": _NAVIGATION
    for robot in ("Point", "Car")
    for task in ("Goal", "Circle", "Button")
    for level in (0, 1, 2)
}

Factory = Callable[[str, int, int, int | None], CostVectorEnv]
NAMESPACE = "flashbulb"  # under which Gymnasium knows our tasks
Vectorise = Literal["processes", "threads", "serial"]


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


def make(
    env_id: str, num_envs: int = 20, seed: int = 0, threads: int | None = None, vectorise: Vectorise = "processes"
) -> CostVectorEnv:
    """A batch of `num_envs` members of a task, stepped by `threads` threads (default: all cores).

    Beside our ids, `module:function` and any id that Gymnasium knows will do: such environments run in as many
    processes or threads, or one after the other, as `vectorise` says.
    """
    env_id = resolve(env_id)
    for field, value in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise UsageError(f"{field}: {value!r} is not allowed; it must be a whole number of at least 1.")
    if env_id not in _MODULE_OF:
        from flashbulb.envs.gym_adapter import GymAdapter

        return GymAdapter(env_id, int(num_envs), int(seed), threads or os.cpu_count() or 1, vectorise)
    module = importlib.import_module(_MODULE_OF[env_id])
    env: CostVectorEnv = module.make(env_id, int(num_envs), int(seed), threads)
    return env


def resolve(env_id: str) -> str:
    """One of our ids, `module:function` or an id of Gymnasium's; anything else is refused."""
    from flashbulb.envs.gym_single import known_to_gymnasium

    env_id = env_id.removeprefix(f"{NAMESPACE}/")
    if env_id not in _MODULE_OF and ":" not in env_id and not known_to_gymnasium(env_id):
        raise UsageError(
            f"env: unknown task {env_id!r}; the nearest known ids are {nearest(env_id, _MODULE_OF)} "
            "(an environment of your own is named module:function, or by its Gymnasium id)."
        )
    return env_id


def single(env_id: str) -> str:
    """The name of one environment instead of a batch, as `foreign_member.build` takes it: Gymnasium knows ours, too."""
    env_id = resolve(env_id)
    return f"{NAMESPACE}/{env_id}" if env_id in _MODULE_OF else env_id
