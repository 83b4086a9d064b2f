"""What each field of a configuration may be; a violation is said in one sentence."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from pathlib import Path
from typing import Any

from flashbulb.config import Config
from flashbulb.errors import UsageError

_POSITIVE_WHOLE = (
    "steps",
    "num_envs",
    "steps_per_iteration",
    "threads",
    "checkpoint_every",
    "keep_checkpoints",
    "critic.passes",
    "critic.minibatch",
    "trust_region.cg_iterations",
    "trust_region.search_steps",
    "proximal.passes",
    "proximal.minibatch",
    "pid.delay",
    "memory.neighbours",
    "memory.window",
    "memory.max_states",
)
_POSITIVE = (
    "critic.learning_rate",
    "critic.max_grad_norm",
    "trust_region.kl",
    "proximal.learning_rate",
    "proximal.clip",
    "proximal.kl",
    "proximal.max_grad_norm",
    "pid.maximum",
    "ascent.maximum",
    "budget.discount",
    "memory.xi",
    "memory.offline_clip",
)
_NOT_NEGATIVE = (
    "cost_limit",
    "seed",
    "critic.l2",
    "trust_region.damping",
    "bias_every",
    "memory.embedding",
    "memory.threshold",
    "memory.snapshots",
    "balance.initial",
    "balance.rate",
    "constant.value",
    "pid.proportional",
    "pid.integral",
    "pid.derivative",
    "pid.initial",
    "ascent.learning_rate",
    "ascent.initial",
    "budget.proportional",
    "budget.integral",
    "budget.derivative",
)
_UNIT_INTERVAL = (
    "gamma",
    "cost_gamma",
    "lam",
    "cost_lam",
    "trust_region.search_decay",
    "balance.discount",
    "pid.smooth_proportional",
    "pid.smooth_derivative",
    "budget.discount",
    "budget.start",
    "budget.lowest",
    "budget.smooth",
)
_FINITE = ("policy.initial_log_std", "budget.unsafe_reward")


def validate(config: Config) -> Config:
    """Return the config, or say in one sentence what is wrong with it."""

    def refuse(name: str, value: Any, allowed: str) -> None:
        raise UsageError(f"{name}: {value!r} is not allowed; it must be {allowed}.")

    def numbers(names: tuple[str, ...]) -> list[tuple[str, Any]]:
        return [(name, _lookup(config, name)) for name in names]

    for name, value in numbers(_POSITIVE_WHOLE):
        if value is not None and (int(value) != value or value < 1):
            refuse(name, value, "a whole number of at least 1")
    for name, value in numbers(_POSITIVE):
        if not (math.isfinite(value) and value > 0):
            refuse(name, value, "a finite number above 0")
    for name, value in numbers(_NOT_NEGATIVE):
        if not (math.isfinite(value) and value >= 0):
            refuse(name, value, "a finite number of at least 0")
    for name, value in numbers(_UNIT_INTERVAL):
        if not 0 <= value <= 1:
            refuse(name, value, "between 0 and 1")
    if config.cost_gamma == 1:
        refuse("cost_gamma", config.cost_gamma, "below 1, for the discounted sum of intrinsic costs to be finite")
    for name, value in numbers(_FINITE):
        if not math.isfinite(value):
            refuse(name, value, "a finite number")
    for name in ("policy.hidden", "critic.hidden"):
        if not all(size >= 1 for size in _lookup(config, name)):
            refuse(name, _lookup(config, name), "sizes of at least 1")
    if config.steps_per_iteration < config.num_envs:
        refuse("steps_per_iteration", config.steps_per_iteration, f"at least num_envs ({config.num_envs})")
    return config


def _lookup(config: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        config = getattr(config, part)
    return config


def rebuild(plain: Any) -> Config:
    """The configuration of which `to_dict` made these plain values; a field that is missing has its default."""
    if not isinstance(plain, dict) or not {"recipe", "env"} <= set(plain):
        raise UsageError("config: it must be a table with at least recipe and env.")
    return validate(_rebuild(Config, plain, ""))


def _rebuild(kind: type, plain: Any, prefix: str) -> Any:
    if not isinstance(plain, dict):
        raise UsageError(f"{prefix.rstrip('.')}: {plain!r} is not allowed; it must be a table.")
    hints = typing.get_type_hints(kind)
    unknown = set(plain) - set(hints)
    if unknown:
        raise UsageError(f"{prefix}{min(unknown)}: there is no such setting.")
    return kind(**{name: _value(hints[name], value, prefix + name) for name, value in plain.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    """A plain value as the type that the field has."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _rebuild(hint, value, f"{name}.")
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if typing.get_origin(kind) is typing.Literal and value in typing.get_args(kind):
            return value
        if kind is tuple or typing.get_origin(kind) is tuple:
            if isinstance(value, list | tuple) and all(type(item) is int for item in value):
                return tuple(value)
        elif kind is Path and isinstance(value, str):
            return Path(value)
        elif kind is float and type(value) is int:
            return float(value)
        elif type(value) is kind:
            return value
    shown = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise UsageError(f"{name}: {value!r} is not allowed; it must be of type {shown}.")
