"""Checks values against the types and bounds of a dataclass's fields; a violation is reported in one sentence."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import numbers
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from annotated_types import GroupedMetadata as Group

from flashbulb.config import BalanceConfig, Config, MemoryConfig
from flashbulb.cost_limits import RESERVED
from flashbulb.errors import UsageError

T = TypeVar("T")
_LARGEST = 2**63 - 1024  # fits into 64 bits, and into a float
_BOUNDS = (  # marker, its attribute, whether a value violates it, its words
    (Ge, "ge", lambda value, bound: value < bound, "of at least"),
    (Gt, "gt", lambda value, bound: value <= bound, "above"),
    (Le, "le", lambda value, bound: value > bound, "at most"),
    (Lt, "lt", lambda value, bound: value >= bound, "below"),
)


def validate(config: Config) -> Config:
    """Return the configuration with every value of its field's type, or raise a `UsageError` for the first bad one."""
    config = conform(config)
    if config.name is not None and (config.name in (".", "..") or not {"/", "\0"}.isdisjoint(config.name)):
        raise refusal("name", config.name, "the name of a directory, not a path")
    if config.steps_per_iteration < config.num_envs:
        raise refusal("steps_per_iteration", config.steps_per_iteration, f"at least num_envs ({config.num_envs})")
    if config.cost_estimate == "steps" and not config.stagger:
        raise refusal("cost_estimate", "steps", "'episodes' unless stagger is on, or all episodes end at the same time")
    _check_memory(config.memory)
    if config.cost_normalise != "none" and config.memory.criterion == "return":
        raise refusal(
            "cost_normalise", config.cost_normalise, "'none' with the criterion 'return', which is in raw costs"
        )
    return _with_checked_names(config)


def _with_checked_names(config: Config) -> Config:
    """The configuration with several costs in the order of their names, which are checked; one cost has no name."""
    limits = config.cost_limit
    if not isinstance(limits, dict):
        return config
    if not limits:
        raise refusal("cost_limit", limits, "a number, or a limit for each of several named costs")
    for name in limits:
        taken = any(name == word or name.startswith(f"{word}_") for word in RESERVED)
        if taken or not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,39}", name):
            raise UsageError(
                f"cost_limit: {name!r} is not allowed as the name of a cost; it must be letters, digits and _, at most "
                f"40, and none of the words that columns end with ({', '.join(RESERVED)})."
            )
    one_only = {
        "bias_every": config.bias_every or None,
        "memory.offline": config.memory.offline,
        "memory.recall": None if config.memory.recall == "batch" else config.memory.recall,
        "balance.factor": None if config.balance.factor == BalanceConfig().factor else config.balance.factor,
        "cost_normalise": None if config.cost_normalise == "none" else config.cost_normalise,
    }
    for field, value in one_only.items():
        if value is not None:
            raise refusal(field, value, "left out with several costs, because it is for one")
    return dataclasses.replace(config, cost_limit=dict(sorted(limits.items())))


def _check_memory(memory: MemoryConfig) -> None:
    if memory.recall != "causal":
        return
    if memory.offline is not None:
        raise refusal("memory.recall", "causal", "'batch' or 'previous' where a data set fills the memory")
    if memory.queue <= memory.neighbours:
        raise refusal("memory.queue", memory.queue, f"above memory.neighbours ({memory.neighbours})")


def rebuild(plain: Any) -> Config:
    """Return the configuration from which `to_dict` made these plain values; missing fields get their defaults."""
    if not isinstance(plain, dict) or not {"algorithm", "env"} <= set(plain):
        raise UsageError("config: it must be a table with at least algorithm and env.")
    return validate(_build(Config, plain, ""))


def conform(part: T) -> T:
    """Return a copy of a dataclass in which every value has its field's type and lies within its field's bounds."""
    built: T = _build(type(part), _fields(part), "")
    return built


def refusal(name: str, value: Any, allowed: str) -> UsageError:
    """The error for a value that its field does not allow."""
    return UsageError(f"{name}: {value!r} is not allowed; it must be {allowed}.")


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


_hints = functools.cache(functools.partial(typing.get_type_hints, include_extras=True))  # slow, and called per run


def _build(kind: type, plain: Any, prefix: str) -> Any:
    if not isinstance(plain, dict):
        raise refusal(prefix.rstrip("."), plain, "a table of settings")
    hints = _hints(kind)
    unknown = set(plain) - set(hints)
    if unknown:
        raise UsageError(f"{prefix}{min(map(str, unknown))}: there is no such setting.")
    return kind(**{name: _value(hints[name], value, prefix + name) for name, value in plain.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    """Convert a value to its field's type: 1e6 is a whole number, and a list serves as a tuple."""
    kind, bounds = _unwrap(hint)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _build(kind, _fields(value) if type(value) is kind else value, f"{name}.")
    options = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    if value is None and types.NoneType in options:
        return None
    for option in options:
        inner, inner_bounds = _unwrap(option)
        fitting = _fit(inner, value)
        if fitting is not None:
            _check_bounds(inner, [*bounds, *inner_bounds], fitting, name)
            return fitting
    raise refusal(name, value, " or ".join(map(_in_words, options)))


def _unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """The type inside `Annotated`, and the bounds it carries."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, []
    kind, *metadata = typing.get_args(hint)
    return kind, [bound for item in metadata for bound in (item if isinstance(item, Group) else (item,))]


def _check_bounds(kind: Any, bounds: list[Any], value: Any, name: str) -> None:
    if typing.get_origin(kind) is tuple:
        item_kind, item_bounds = _unwrap(typing.get_args(kind)[0])
        for item in value:
            _check_bounds(item_kind, item_bounds, item, name)
    elif typing.get_origin(kind) is dict:
        item_kind, item_bounds = _unwrap(typing.get_args(kind)[1])
        for key, item in value.items():
            _check_bounds(item_kind, item_bounds, item, f"{name}.{key}")
    elif kind in (int, float):
        limits = list(_limits(bounds))
        if not math.isfinite(value) or any(violated(value, limit) for violated, _, limit in limits):
            number = "a whole number" if kind is int else "a finite number"
            allowed = " and ".join(f"{words} {limit}" for _, words, limit in limits)
            raise refusal(name, value, f"{number} {allowed}".strip())


def _limits(bounds: list[Any]) -> Iterator[tuple[Any, str, Any]]:
    for bound in bounds:
        for marker, attribute, violated, words in _BOUNDS:
            if isinstance(bound, marker):
                yield violated, words, getattr(bound, attribute)


def _fit(kind: Any, value: Any) -> Any:
    """The value as that type, or None if it cannot be converted without loss."""
    if kind is int:
        return _whole(value)
    if kind is float:
        return _real(value)
    if kind is Path:
        return Path(value) if isinstance(value, str | Path) and "\0" not in str(value) else None
    if typing.get_origin(kind) is typing.Literal:
        return value if isinstance(value, str) and value in typing.get_args(kind) else None
    if typing.get_origin(kind) is dict:
        return _fit_table(_unwrap(typing.get_args(kind)[1])[0], value)
    if typing.get_origin(kind) is tuple:
        item_kind = _unwrap(typing.get_args(kind)[0])[0]
        items = [_fit(item_kind, item) for item in value] if isinstance(value, list | tuple) else [None]
        return None if None in items else tuple(items)
    return value if isinstance(value, kind) else None


def _fit_table(item_kind: Any, value: Any) -> dict[str, Any] | None:
    """A table of items of one kind, or of whatever JSON can hold if the kind is `Any`."""
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        return None
    if item_kind is not Any:
        items = {name: _fit(item_kind, item) for name, item in value.items()}
        return None if None in items.values() else items
    try:
        return value if json.loads(json.dumps(value, allow_nan=False)) == value else None
    except (TypeError, ValueError):
        return None


def _real(value: Any) -> float | None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _whole(value: Any) -> int | None:
    """Whole numbers stay exact; a float would round them above 2**53."""
    exact = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    number: float | int | None = int(value) if exact else _real(value)
    return int(number) if number is not None and abs(number) <= _LARGEST and number == number // 1 else None


def _in_words(kind: Any) -> str:
    kind = _unwrap(kind)[0]
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(kind)))
    if typing.get_origin(kind) is dict:
        named = typing.get_args(kind)[1] is not Any
        return "a table of names and numbers" if named else "a table of values that JSON can hold"
    if typing.get_origin(kind) is tuple:
        return "a list of whole numbers" if _unwrap(typing.get_args(kind)[0])[0] is int else "a list"
    words = {int: "a whole number below 2^63", float: "a number", Path: "a path", str: "text", bool: "True or False"}
    return words.get(kind, "None")
