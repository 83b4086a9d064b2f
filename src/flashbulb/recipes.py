"""Every named algorithm as a combination of parts, and the defaults it changes. Nothing else knows names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.learn.parts import Recipe
from flashbulb.validation import validate

_BASES: dict[str, Recipe] = {
    "cpo": Recipe("Constrained policy optimisation", "trust-region", "dual"),
    "c-trpo": Recipe("TRPO in a region whose divergence grows without bound at the limit", "trust-region", "barrier"),
    "sb-trpo": Recipe("TRPO that keeps a share of the possible drop in cost", "trust-region", "share"),
    "pid-lag": Recipe("PPO with a multiplier that a PID controller sets", "proximal", "pid"),
    "trpo-pid": Recipe("TRPO with a multiplier that a PID controller sets", "trust-region", "pid"),
    "ppo-lag": Recipe("PPO with a multiplier that ascends its gradient", "proximal", "ascent"),
    "cup": Recipe("PPO step for reward, then projection for cost", "proximal-projection", "ascent"),
    "saute": Recipe("PPO that sees its cost budget and loses its reward beyond it", "proximal", augmentation="saute"),
    "simmer-pid": Recipe("Saute with a budget that a PID controller schedules", "proximal", augmentation="simmer"),
    "td3-pid": Recipe("PID Lagrangian with the larger of two cost critics", "proximal", "pid", cost_critics=2),
    "trpo": Recipe("Trust region policy optimisation; ignores cost", "trust-region"),
    "ppo": Recipe("Proximal policy optimisation; ignores cost", "proximal"),
}


def recipe(name: str) -> Recipe:
    """That recipe: of the table, or composed as `mice-X`, `constant-N-X`, `X-no-projection`, `X-salient`."""
    known = _find(name)
    if known is None:
        raise UsageError(
            f"recipe: unknown recipe {name!r}; the known ones are {', '.join(RECIPES)}, and mice-X, constant-N-X "
            "for an X that heeds costs."
        )
    return known


def _find(name: str) -> Recipe | None:
    return RECIPES.get(name) or _compose(name)


# The salient view reaches further, so a smaller factor does as much: chosen on tuning seeds of PointGoal1 (method.md).
_SALIENT = {"memory": {"view": "salient", "xi": 0.1}, "balance": {"initial": 0.6, "rate": 0.0006}}
_SUFFIXES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "-no-projection": ("Ablation: no random projection.", {"memory": {"embedding": 0}}),
    "-salient": ("Ours: a memory that sorts lidars and heeds what tells danger.", _SALIENT),
}


def _compose(name: str) -> Recipe | None:
    for suffix, (what, settings) in _SUFFIXES.items():
        if name.endswith(suffix) and (base := _find(name.removesuffix(suffix))):
            if base.cost_stream != "memory" or set(base.settings) & set(settings):
                raise UsageError(
                    f"recipe: {name!r} is not a recipe; {suffix} needs a mice-X before it, and none other."
                )
            return dataclasses.replace(base, summary=f"{what} {base.summary}", settings={**base.settings, **settings})
    if name.startswith("mice-") and (base := _find(name.removeprefix("mice-"))):
        return _replace_stream(name, base, "memory", f"MICE: memory-driven intrinsic cost. {base.summary}", {})
    constant = re.fullmatch(r"constant-(\d+(?:\.\d+)?)-(.+)", name)
    if constant and (base := _find(constant[2])):
        summary = f"Ablation: {constant[1]} added to the cost value. {base.summary}"
        return _replace_stream(name, base, "constant", summary, {"constant": {"value": float(constant[1])}})
    return None


def _replace_stream(name: str, base: Recipe, stream: Any, summary: str, settings: Mapping[str, Any]) -> Recipe:
    if not base.heeds_cost_critic:
        raise UsageError(f"recipe: {name!r} is not a recipe; its base has no cost critic for a cost stream to act on.")
    if base.cost_stream != "extrinsic":
        raise UsageError(f"recipe: {name!r} is not a recipe; its base already replaces the cost stream.")
    return dataclasses.replace(base, summary=summary, cost_stream=stream, settings={**base.settings, **settings})


RECIPES: dict[str, Recipe] = dict(_BASES)
RECIPES["mice-pid"] = recipe("mice-pid-lag")  # the paper's short name
for _name in (
    "mice-cpo",
    "mice-cup",
    "constant-3-cpo",
    "constant-5-cpo",
    "constant-15-cpo",
    "mice-cpo-no-projection",
):
    RECIPES[_name] = recipe(_name)


def configure(name_of_recipe: str, env: str, /, **settings: Any) -> Config:
    """A recipe's configuration with the caller's settings on top; parts may be dictionaries."""
    config = Config(recipe=name_of_recipe, env=env)
    config = _with_settings(config, recipe(name_of_recipe).settings)
    return validate(_with_settings(config, settings))


def _with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    for field, value in settings.items():
        part = getattr(config, field, None)
        if field not in {f.name for f in dataclasses.fields(Config)}:
            raise UsageError(f"{field}: there is no such setting; see flashbulb.config.Config.")
        if isinstance(value, dict) and dataclasses.is_dataclass(part) and not isinstance(part, type):
            unknown = set(value) - {f.name for f in dataclasses.fields(part)}
            if unknown:
                raise UsageError(
                    f"{field}.{min(map(str, unknown))}: there is no such setting in {type(part).__name__}."
                )
            value = dataclasses.replace(part, **value)
        config = dataclasses.replace(config, **{field: value})
    return config
