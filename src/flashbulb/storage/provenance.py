"""With what a run was made: versions of packages and Python, machine and commit, and what of it has changed since."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from flashbulb.storage.safe_files import read_json


def provenance() -> dict[str, Any]:
    """Versions of packages and Python, machine and commit."""
    import importlib.metadata
    import platform

    packages = ("flashbulb", "jax", "jaxlib", "mujoco", "numpy", "scipy", "numba", "optax")
    return {
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
    }


def commit() -> str | None:
    """The source's commit, marked where the tree differs from it; None outside a checkout."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def changes_since(run: Path) -> list[str]:
    """What is different here from what the run was started with, such as "numpy 2.1.0, now 2.2.0".

    A resumed run is exact for equal versions and processors. Cores and commits may differ: the one changes no result,
    and the other changes with every edit of the source.
    """
    try:
        saved = read_json(run / "config.json")
        then, now = _comparable(saved), _comparable(provenance())
    except (OSError, ValueError, TypeError, AttributeError):
        return []
    return [f"{name} {then[name]}, now {now[name]}" for name in then if name in now and then[name] != now[name]]


def _comparable(about: dict[str, Any]) -> dict[str, str]:
    processor = {"processor": str(about["machine"]).partition(",")[0]} if "machine" in about else {}
    python = {"Python": about["python"]} if "python" in about else {}
    return {name: str(value)[:40] for name, value in {**about.get("versions", {}), **python, **processor}.items()}
