"""The task ids, and `make`, which builds a batch of environments from an id."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from typing import Literal

import gymnasium

from flashbulb.cores import thread_count
from flashbulb.envs.base import CostVectorEnv
from flashbulb.errors import UsageError

# The module of each id: it has `make(env_id, num_envs, seed, threads, physics)` and is imported when it is needed.
_MODULE_OF: dict[str, str] = {"HazardField-v0": "flashbulb.envs.hazard_field"}
_MODULE_OF |= {
    f"Safety{robot}Velocity-v1": "flashbulb.envs.velocity"
    for robot in ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d", "Swimmer")
}
_MODULE_OF |= {
    f"Safety{robot}{task}{level}-v0": "flashbulb.envs.navigation"
    for robot in ("Point", "Car")
    for task in ("Goal", "Circle", "Button")
    for level in (0, 1, 2)
}

NAMESPACE = "flashbulb"  # of our tasks in Gymnasium's registry
Vectorise = Literal["processes", "threads", "serial"]
PhysicsBackend = Literal["compiled", "rollout"]


def env_ids() -> list[str]:
    """All ids of our own tasks."""
    return list(_MODULE_OF)


def register_gymnasium() -> None:
    """Register every task with Gymnasium as `flashbulb/<id>`. No task is imported before it is made."""
    for env_id in _MODULE_OF:
        name = f"{NAMESPACE}/{env_id}"
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point="flashbulb.envs.gym_adapter:GymEnv", kwargs={"env_id": env_id})


def make(
    env_id: str,
    num_envs: int = 20,
    seed: int = 0,
    threads: int | None = None,
    vectorise: Vectorise = "processes",
    physics: PhysicsBackend | None = None,
    step_timeout: float | None = None,
) -> CostVectorEnv:
    """A batch of `num_envs` environments of a task, stepped by `threads` threads (default: one per usable core).

    Besides our ids, `module:function` and any Gymnasium id are allowed. Such user environments run in processes, in
    threads or one after the other, as `vectorise` says. `physics` selects how MuJoCo is called: from compiled code, or
    through `mujoco.rollout` and `mj_step` (slower; default: the environment variable FLASHBULB_PHYSICS, or compiled).
    A user environment in a process must answer a step within `step_timeout` seconds, if given.
    """
    env_id = resolve(env_id)
    for field, value in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise UsageError(f"{field}: {value!r} is not allowed; it must be a whole number of at least 1.")
    if env_id not in _MODULE_OF:
        from flashbulb.envs.gym_adapter import GymAdapter

        return GymAdapter(env_id, int(num_envs), int(seed), thread_count(threads), vectorise, step_timeout)
    module = importlib.import_module(_MODULE_OF[env_id])
    env: CostVectorEnv = module.make(env_id, int(num_envs), int(seed), threads, physics)
    return env


def resolve(env_id: str) -> str:
    """The id without our namespace; refused unless it is one of our ids, `module:function` or a Gymnasium id."""
    from flashbulb.envs.gym_single import known_to_gymnasium

    env_id = env_id.removeprefix(f"{NAMESPACE}/")
    if env_id not in _MODULE_OF and ":" not in env_id and not known_to_gymnasium(env_id):
        raise UsageError(
            f"env: unknown task {env_id!r}; the nearest known ids are {nearest(env_id, _MODULE_OF)} "
            "(an environment of your own is named module:function, or by its Gymnasium id)."
        )
    return env_id


def single(env_id: str) -> str:
    """The name under which `gym_single.build_env` makes a single environment of this task."""
    env_id = resolve(env_id)
    return f"{NAMESPACE}/{env_id}" if env_id in _MODULE_OF else env_id


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """The known names most similar to `name`, for an error message; all of them if none is similar."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=count, cutoff=0.4)
    lowered = {k.lower(): k for k in known}
    if not close:
        close = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=count, cutoff=0.3)]
    return ", ".join(close or known)
