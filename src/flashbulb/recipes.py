"""Every named algorithm as a combination of parts, and the defaults it changes. Nothing else knows names."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from flashbulb.config import Config, validate
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class Recipe:
    """What a learner is made of."""

    summary: str
    cost_stream: Literal["extrinsic", "memory"] = "extrinsic"
    """What the cost critic learns from: the task's cost, or that plus beta c^I (MICE)."""
    cost_critics: int = 1
    """How many; of several the maximum counts."""


RECIPES: dict[str, Recipe] = {
    "cpo": Recipe("Constrained policy optimisation"),
    "mice-cpo": Recipe("CPO with memory-driven intrinsic cost estimation", cost_stream="memory"),
}


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UsageError(f"recipe: unknown recipe {name!r}; the known ones are {', '.join(RECIPES)}.")
    return RECIPES[name]


def configure(name: str, env: str, **settings: Any) -> Config:
    """A recipe's configuration with the caller's settings on top; parts may be dictionaries."""
    recipe(name)
    config = Config(recipe=name, env=env)
    for field, value in settings.items():
        part = getattr(config, field, None)
        if field not in {f.name for f in dataclasses.fields(Config)}:
            raise UsageError(f"{field}: there is no such setting; see flashbulb.config.Config.")
        if isinstance(value, dict) and dataclasses.is_dataclass(part) and not isinstance(part, type):
            unknown = set(value) - {f.name for f in dataclasses.fields(part)}
            if unknown:
                raise UsageError(f"{field}.{min(unknown)}: there is no such setting in {type(part).__name__}.")
            value = dataclasses.replace(part, **value)
        config = dataclasses.replace(config, **{field: value})
    return validate(config)
