"""Configurations as YAML: what a run was made with, and files to train from. Reading one runs no code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from flashbulb.config import Config, to_dict
from flashbulb.errors import UsageError


def config_to_yaml(config: Config, unused: frozenset[str] = frozenset()) -> str:
    """The configuration as YAML, without the settings that its algorithm does not use."""
    plain = {name: value for name, value in to_dict(config).items() if name not in unused}
    text: str = yaml.safe_dump(_without_tuples(plain), sort_keys=False, allow_unicode=True)
    return text


def read_yaml(path: Path) -> dict[str, Any]:
    """The settings in a file: names as in `Config`, parts as tables."""
    try:
        content = yaml.safe_load(Path(path).read_text())
    except OSError as error:
        raise UsageError(f"config: {path} cannot be read ({error.strerror}).") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"config: {path} is not YAML ({' '.join(str(error).split())}).") from None
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise UsageError(f"config: {path} is not allowed; it must be a table of settings, such as `seed: 0`.")
    return {name: _numbers(value) for name, value in content.items()}


def _numbers(value: Any) -> Any:
    """YAML reads 1e6, which has no dot, as text; here it is a number."""
    if isinstance(value, dict):
        return {name: _numbers(inner) for name, inner in value.items()}
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", value):
        return float(value)
    return value


def _without_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_tuples(inner) for name, inner in value.items()}
    return [_without_tuples(item) for item in value] if isinstance(value, tuple | list) else value
