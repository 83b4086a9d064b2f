"""The task ids, and `make`, which builds a batch of environments from an id."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import gymnasium

from flashbulb.cores import thread_count
from flashbulb.envs.base import CostVectorEnv
from flashbulb.errors import UsageError
from flashbulb.plugins import load_installed, registering_module

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
EnvSource = str | Callable[..., Any]  # the name of an environment, or what makes one


class RegisteredEnv(NamedTuple):
    """A task of a plugin or of a script."""

    make: Callable[..., Any] | str
    batched: bool
    plugin: str  # the module that registered it


_REGISTERED: dict[str, RegisteredEnv] = {}


def register_env(env_id: str, make: Callable[..., Any] | str, *, batched: bool = False) -> None:
    """Make a task known under an id.

    `make()` returns one Gymnasium environment that reports its cost, of which a batch is made; it may be given as
    "module:function". With `batched`, `make(num_envs, seed)` returns a whole batch, a `CostVectorEnv`.
    """
    if not isinstance(env_id, str) or not re.fullmatch(r"[\w-]+", env_id):
        raise UsageError(f"env: {env_id!r} is not allowed as an id; it must be letters, digits and hyphens.")
    if not callable(make) and (batched or not isinstance(make, str) or ":" not in make):
        raise UsageError(f"env: {make!r} cannot make {env_id}; it must be a function, or its name as module:function.")
    module = registering_module()
    if env_id in _MODULE_OF or (env_id in _REGISTERED and _REGISTERED[env_id].plugin != module):
        raise UsageError(f"env: {env_id!r} is taken; choose another id.")
    _REGISTERED[env_id] = RegisteredEnv(make, batched, module)


def env_plugins(env_id: str) -> tuple[str, ...]:
    """The module that a task needs because it registered it, if there is one."""
    found = _registered(env_id)
    return (found.plugin,) if found else ()


def _registered(env_id: str) -> RegisteredEnv | None:
    """A task of a plugin. Installed plugins are loaded for ids that nothing else knows."""
    from flashbulb.envs.gym_single import known_to_gymnasium

    if not (env_id in _MODULE_OF or env_id in _REGISTERED or ":" in env_id or known_to_gymnasium(env_id)):
        load_installed()
    return _REGISTERED.get(env_id)


def env_ids() -> list[str]:
    """All ids of our own tasks, and of those that were registered."""
    return [*_MODULE_OF, *_REGISTERED]


def register_gymnasium() -> None:
    """Register every task with Gymnasium as `flashbulb/<id>`. No task is imported before it is made."""
    for env_id in _MODULE_OF:
        name = f"{NAMESPACE}/{env_id}"
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="flashbulb.envs.gym_tasks:GymEnv",
                vector_entry_point="flashbulb.envs.gym_tasks:GymVectorEnv",
                max_episode_steps=500 if "Circle" in env_id else 1000,
                kwargs={"env_id": env_id},
            )


def make(
    env_id: str,
    num_envs: int = 20,
    seed: int = 0,
    threads: int | None = None,
    vectorise: Vectorise = "processes",
    physics: PhysicsBackend | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    step_timeout: float | None = None,
) -> CostVectorEnv:
    """A batch of `num_envs` environments of a task, stepped by `threads` threads (default: one per usable core).

    Besides our ids, `module:function` and any Gymnasium id are allowed. Such user environments run in processes, in
    threads or one after the other, as `vectorise` says. `physics` selects how MuJoCo is called: from compiled code, or
    through `mujoco.rollout` and `mj_step` (slower; default: the environment variable FLASHBULB_PHYSICS, or compiled).
    `env_kwargs` are arguments of what makes the environment, or parameters of our own tasks. A user environment in a
    process must answer a step within `step_timeout` seconds, if given.
    """
    kwargs = dict(env_kwargs or {})
    env_id = resolve(env_id)
    for field, value in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise UsageError(f"{field}: {value!r} is not allowed; it must be a whole number of at least 1.")
    registered = _registered(env_id)
    if registered and registered.batched:
        assert callable(registered.make)
        batch: CostVectorEnv = registered.make(int(num_envs), int(seed), **kwargs)
        return batch
    if env_id not in _MODULE_OF:
        from flashbulb.envs.env_pool import start_pool
        from flashbulb.envs.gym_adapter import GymAdapter

        pool = start_pool(vectorise, single(env_id), int(num_envs), thread_count(threads), kwargs, step_timeout)
        return GymAdapter(env_id, pool, int(num_envs), int(seed))
    module = importlib.import_module(_MODULE_OF[env_id])
    allowed = getattr(module, "PARAMETERS", ())
    unknown = sorted(set(kwargs) - set(allowed))
    if unknown:
        takes = f"takes {', '.join(allowed)}" if allowed else "has no parameters"
        raise UsageError(f"env_kwargs: {unknown[0]!r} is not allowed; {env_id} {takes}.")
    env: CostVectorEnv = module.make(env_id, int(num_envs), int(seed), threads, physics, **kwargs)
    return env


def resolve(env_id: str) -> str:
    """The id without our namespace; refused unless it is one of our ids, `module:function` or a Gymnasium id."""
    from flashbulb.envs.env_objects import given_env
    from flashbulb.envs.gym_single import known_to_gymnasium

    given_env(env_id)
    env_id = env_id.removeprefix(f"{NAMESPACE}/")
    if not (env_id in _MODULE_OF or _registered(env_id) or ":" in env_id or known_to_gymnasium(env_id)):
        raise UsageError(
            f"env: unknown task {env_id!r}; the nearest known ids are {nearest(env_id, env_ids())} "
            "(an environment of your own is named module:function, or by its Gymnasium id)."
        )
    return env_id


def single(env_id: str) -> EnvSource:
    """What `gym_single.build_env` makes a single environment of this task from."""
    from flashbulb.envs.env_objects import given_env

    env_id = resolve(env_id)
    registered = _registered(env_id)
    if registered and not registered.batched:
        return registered.make
    given = given_env(env_id)
    if given:
        return given
    return f"{NAMESPACE}/{env_id}" if env_id in _MODULE_OF else env_id


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """The known names most similar to `name`, for an error message; all of them if none is similar."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=count, cutoff=0.4)
    lowered = {k.lower(): k for k in known}
    if not close:
        close = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=count, cutoff=0.3)]
    return ", ".join(close or known)
