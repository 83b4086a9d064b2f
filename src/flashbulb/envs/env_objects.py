"""Environments that are given as objects: a class, a function, an instance. They get a name, as every task has one.

What another process can import is named `module:function`. Anything else, such as a class of a notebook, is kept here
under `object:NAME` and known to this process only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium

from flashbulb.envs.base import CostVectorEnv
from flashbulb.envs.gym_single import importable_name
from flashbulb.errors import UsageError

# An id, a class or a function that makes an environment, or an environment.
EnvLike = str | Callable[..., Any] | gymnasium.Env | CostVectorEnv
PREFIX = "object:"
_given: dict[str, Callable[..., Any]] = {}


def name_env(env: Any) -> str:
    """The name by which `make` and `check` find an environment: an id, or what is given as an object."""
    if isinstance(env, str):
        return env
    if callable(env):
        name = importable_name(env)
        if name is not None:
            return name
        label, factory = getattr(env, "__qualname__", type(env).__name__), env
    elif hasattr(env, "reset") and hasattr(env, "step"):
        label, factory = type(env).__qualname__, _copies_of(env)
    else:
        raise UsageError(
            f"env: a {type(env).__name__} is not allowed; it must be an id, a class or function that makes an "
            "environment, or an environment."
        )
    name = PREFIX + label.rpartition(".")[2].strip("<>")
    _given[name] = factory
    return name


def given_env(name: str) -> Callable[..., Any] | None:
    """What makes the environment of that name, if it was given as an object; None for all other names."""
    if not name.startswith(PREFIX):
        return None
    if name not in _given:
        raise UsageError(
            f"env: {name!r} was an object of the process that trained; give it again, as in "
            "flashbulb.resume(run, env=MyEnv)."
        )
    return _given[name]


def _copies_of(env: Any) -> Callable[..., Any]:
    def another(**kwargs: Any) -> Any:
        if kwargs:
            raise UsageError("env_kwargs: an environment that is made already takes none; give its class.")
        try:
            return copy.deepcopy(env)
        except Exception as error:
            raise UsageError(
                f"env: {type(env).__name__} cannot be copied ({type(error).__name__}: {error}); give its class, or a "
                "function that makes one."
            ) from error

    return another
