"""What each field of a configuration may be; a violation is said in one sentence."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
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
    "bias_states",
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
    "balance.margin",
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
_LARGEST = 2.0**63 - 1024  # fits into 64 bits, and into a float
_FINITE = ("policy.initial_log_std", "budget.unsafe_reward")


def validate(config: Config) -> Config:
    """Return the config with every value of its field's type, or say in one sentence what is wrong with it."""
    config = _rebuild(Config, _fields(config), "")

    def refuse(name: str, value: Any, allowed: str) -> None:
        raise UsageError(f"{name}: {value!r} is not allowed; it must be {allowed}.")

    def valued(names: tuple[str, ...]) -> list[tuple[str, Any]]:
        return [(name, _lookup(config, name)) for name in names]

    for name, value in valued(_POSITIVE_WHOLE):
        if value is not None and (int(value) != value or value < 1):
            refuse(name, value, "a whole number of at least 1")
    for name, value in valued(_POSITIVE):
        if not (math.isfinite(value) and value > 0):
            refuse(name, value, "a finite number above 0")
    for name, value in valued(_NOT_NEGATIVE):
        if not (math.isfinite(value) and value >= 0):
            refuse(name, value, "a finite number of at least 0")
    for name, value in valued(_UNIT_INTERVAL):
        if not 0 <= value <= 1:
            refuse(name, value, "between 0 and 1")
    if config.cost_gamma == 1:
        refuse("cost_gamma", config.cost_gamma, "below 1, for the discounted sum of intrinsic costs to be finite")
    for name, value in valued(_FINITE):
        if not math.isfinite(value):
            refuse(name, value, "a finite number")
    for name in ("policy.hidden", "critic.hidden"):
        if not all(size >= 1 for size in _lookup(config, name)):
            refuse(name, _lookup(config, name), "sizes of at least 1")
    if config.name is not None and (config.name in (".", "..") or not {"/", "\0"}.isdisjoint(config.name)):
        refuse("name", config.name, "the name of a directory, not a path")
    if config.steps_per_iteration < config.num_envs:
        refuse("steps_per_iteration", config.steps_per_iteration, f"at least num_envs ({config.num_envs})")
    return config


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def _lookup(config: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        config = getattr(config, part)
    return config


def rebuild(plain: Any) -> Config:
    """The configuration of which `to_dict` made these plain values; a field that is missing has its default."""
    if not isinstance(plain, dict) or not {"algorithm", "env"} <= set(plain):
        raise UsageError("config: it must be a table with at least algorithm and env.")
    return validate(_rebuild(Config, plain, ""))


_hints = functools.cache(typing.get_type_hints)  # a study reads hundreds of configurations


def _rebuild(kind: type, plain: Any, prefix: str) -> Any:
    if not isinstance(plain, dict):
        raise UsageError(f"{prefix.rstrip('.')}: {plain!r} is not allowed; it must be a table of settings.")
    hints = _hints(kind)
    unknown = set(plain) - set(hints)
    if unknown:
        raise UsageError(f"{prefix}{min(map(str, unknown))}: there is no such setting.")
    return kind(**{name: _value(hints[name], value, prefix + name) for name, value in plain.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    """A value as the type that the field has; 1e6 is a whole number, a list of sizes is as good as a tuple."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _rebuild(hint, _fields(value) if type(value) is hint else value, f"{name}.")
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        fitting = _fit(kind, value)
        if fitting is not None or (value is None and kind is types.NoneType):
            return fitting
    raise UsageError(f"{name}: {value!r} is not allowed; it must be {' or '.join(map(_in_words, kinds))}.")


def _fit(kind: Any, value: Any) -> Any:
    """The value as that kind, or None if it is none."""
    if kind in (int, float):
        number = _number(value)
        whole = number is not None and abs(number) <= _LARGEST and number == number // 1
        return number if kind is float else int(value) if whole else None
    if kind is Path:
        return Path(value) if isinstance(value, str | Path) and "\0" not in str(value) else None
    if typing.get_origin(kind) is typing.Literal:
        return value if isinstance(value, str) and value in typing.get_args(kind) else None
    if typing.get_origin(kind) is tuple:  # all of ours are of whole numbers
        items = [_fit(int, item) for item in value] if isinstance(value, list | tuple) else [None]
        return None if None in items else tuple(items)
    return value if isinstance(value, kind) else None


def _number(value: Any) -> float | None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _in_words(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return "a list of whole numbers"
    words = {int: "a whole number below 2^63", float: "a number", Path: "a path", str: "text", bool: "True or False"}
    return words.get(kind, "None")
