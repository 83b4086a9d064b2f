"""The cost streams by name, and how others are registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.plugins import load_installed, registering_module

if TYPE_CHECKING:
    from flashbulb.memory.cost_streams import CostStream
    from flashbulb.memory.resampling import OfflinePool


@dataclass(frozen=True)
class StreamPart:
    """What is added to the task's cost, as a part of an algorithm."""

    make: Callable[[Config], CostStream] | None
    """config -> cost stream; None for the built-in ones, which need more than the configuration."""
    settings: tuple[str, ...] = ()
    """The parts of `Config` that it reads."""
    summary: str = ""
    plugin: str = ""
    """The module that registered it."""


# MICE uses the balancing factor; every stream adds to the constraint by `balance.margin`.
_STREAMS: dict[str, StreamPart] = {
    "extrinsic": StreamPart(None),
    "memory": StreamPart(None, ("memory", "balance")),
    "constant": StreamPart(None, ("constant", "balance")),
}
_PREFIXES = ("mice", "constant")  # of composed names, which already mean one of the above


def register_cost_stream(
    name: str, make: Callable[[Config], CostStream], settings: tuple[str, ...] = (), summary: str = ""
) -> None:
    """Make a cost stream known, so that `NAME-X` is algorithm X with it, for every X that has a cost critic.

    `make(config)` returns an object with the methods of `CostStream`; `settings` are the parts of `Config` it reads.
    """
    if not re.fullmatch("[a-z0-9]+", name) or name in _PREFIXES:
        raise UsageError(
            f"cost_stream: {name!r} is not allowed as a name; it must be one lower-case word other than "
            f"{' and '.join(_PREFIXES)}."
        )
    if not callable(make):
        raise UsageError(f"cost_stream: a {type(make).__name__} is not allowed; it must be a function of the Config.")
    module = registering_module()
    if name in _STREAMS and _STREAMS[name].plugin != module:
        raise UsageError(f"cost_stream: {name!r} is taken; choose another name.")
    _STREAMS[name] = StreamPart(make, ("balance", *settings), summary, module)


def stream_part(name: str) -> StreamPart:
    if name not in _STREAMS:
        load_installed()
    if name not in _STREAMS:
        raise UsageError(f"cost_stream: {name!r} is not known; the known ones are {', '.join(_STREAMS)}.")
    return _STREAMS[name]


def outside_streams() -> list[str]:
    """The names of the registered ones that are not built in."""
    return [name for name, part in _STREAMS.items() if part.make is not None]


def make_cost_stream(name: str, config: Config, workers: int, pool: OfflinePool | None = None) -> CostStream:
    """The cost stream of that name, or one for each of several costs; `workers` and `pool` are for the memory's."""
    from flashbulb.memory.cost_streams import EachCost

    if not config.cost_names:
        return _stream_of_one(name, config, workers, pool)
    return EachCost({cost: _stream_of_one(name, config, workers, pool) for cost in config.cost_names})


def _stream_of_one(name: str, config: Config, workers: int, pool: OfflinePool | None) -> CostStream:
    from flashbulb.memory.cost_streams import ConstantCost, ExtrinsicCost, MemoryCost

    part = stream_part(name)
    if part.make is not None:
        return part.make(config)
    if name == "memory":
        return MemoryCost(config.memory, config.balance, workers, config.seed, pool)
    if name == "constant":
        return ConstantCost(config.constant, config.balance, config.cost_gamma)
    return ExtrinsicCost()
