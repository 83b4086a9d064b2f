"""Plugins: modules that register algorithms, cost streams and tasks when they are imported.

A module becomes a plugin by being imported by the user, by `--plugin MODULE` on the command line, or as an entry point
of the group `flashbulb.plugins` of an installed package. A run records the modules that it needs. Their names come from
a file that anyone may have written, so they are never imported because a run names them: the user names them, or has
installed them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable

from flashbulb.errors import UsageError

GROUP = "flashbulb.plugins"
SCRIPT = "__main__"
_loading: list[str] = []  # the plugin that is being imported, innermost last


def load_plugin(name: str) -> None:
    """Import a plugin by the name of its module, from the current directory or from where Python finds modules."""
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name):
        raise UsageError(f"plugin: {name!r} is not allowed; it must be the name of a module, such as my_package.parts.")
    if os.getcwd() not in sys.path:  # an installed script has its own directory there instead
        sys.path.insert(0, os.getcwd())
    _import(name, name)


@functools.cache
def load_installed() -> None:
    """Import every plugin that an installed package declares as an entry point; once for each process."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        _import(entry.module, f"{entry.name} of an installed package")


def _import(module: str, called: str) -> None:
    _loading.append(module)
    try:
        importlib.import_module(module)
    except UsageError as error:
        raise UsageError(f"plugin: {called} cannot be loaded ({str(error).rstrip('.')}).") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"plugin: {called} cannot be imported ({type(error).__name__}: {error}).") from error
    finally:
        _loading.pop()


def registering_module() -> str:
    """The plugin on whose behalf something is being registered: the one being loaded, or else the calling module."""
    if _loading:
        return _loading[-1]
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "flashbulb":
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", SCRIPT))


def require_plugins(needed: Iterable[str]) -> None:
    """Raise a `UsageError` if a plugin that a run needs has not been loaded."""
    if _missing(needed):
        load_installed()
    missing = _missing(needed)
    if missing:
        raise UsageError(
            f"plugin: the run needs {missing[0]}, which is not loaded; if you trust it, say --plugin {missing[0]}, or "
            f"in Python import {missing[0]} first."
        )


def _missing(needed: Iterable[str]) -> list[str]:
    return [name for name in needed if name not in sys.modules]


def script_note(needed: Iterable[str]) -> str:
    """What to add to "unknown name" for a run whose algorithm or task a script had registered."""
    if SCRIPT not in needed:
        return ""
    return (
        " (the run's was registered by a script: use it from there, or move the registration into a module and name "
        "that with --plugin)"
    )
