"""Which environments of a run may be used without asking: those that no file in the run's directory can choose freely.

A run's config.json names its environment. `module:function` there would import and call any code on the import path,
so it is used only if the user names the same environment in the same call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder

from flashbulb.envs.env_objects import PREFIX
from flashbulb.envs.gym_single import known_to_gymnasium
from flashbulb.envs.registry import NAMESPACE, env_ids, env_plugins
from flashbulb.errors import UsageError


def require_trusted(source: str, given: str | None = None) -> None:
    """Refuse the environment that a run names unless it is ours, has a Gymnasium id, or is `given`, the user's word.

    A Gymnasium id is known if an installed package registers it. Nothing is imported to find out.
    """
    if given is not None and given != source:
        raise UsageError(f"env: {given!r} is not allowed; the environment of this run is {source!r}.")
    if given is not None or source.removeprefix(f"{NAMESPACE}/") in env_ids() or env_plugins(source):
        return
    if source.startswith(PREFIX):
        return  # an object of this process; `make` refuses it in any other
    if ":" not in source and known_to_gymnasium(source):
        return
    if ":" not in source:
        raise UsageError(f"env: no installed package registers {source!r}, the environment of this run.")
    module, _, function = source.rpartition(":")
    raise UsageError(
        f"env: this run is not of a task of Flashbulb or Gymnasium; it would call {function!r} in "
        f"{module_file(module)}; if you trust it, add --env {source}."
    )


def module_file(name: str) -> str:
    """The file that an import of the module would execute, in words; found without importing its packages."""
    paths: Iterable[str] = [os.getcwd(), *sys.path]
    spec: ModuleSpec | None = None
    for part in name.split("."):
        # With one part at a time, the path of a namespace package is not looked up in sys.modules.
        spec = PathFinder.find_spec(part, list(paths)) if part else None
        if spec is None:
            return f"the module {name!r}, which is not found"
        paths = spec.submodule_search_locations or []
    assert spec is not None
    return spec.origin or f"the package {name!r}"
