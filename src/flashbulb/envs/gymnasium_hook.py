"""Registers the tasks with Gymnasium as soon as both are imported, in whichever order.

Gymnasium has no plugin mechanism any more, and importing it takes longer than `flashbulb --help` may. So
`import flashbulb` does not import it, but asks to be told when somebody does.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Watch:
    """An import finder that finds nothing itself, and lets `flashbulb.envs` register after `gymnasium`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register() -> None:
    """`flashbulb.envs` registers its tasks on import (and, if it is just being imported, will presently)."""
    importlib.import_module("flashbulb.envs")


def watch() -> None:
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Watch())
