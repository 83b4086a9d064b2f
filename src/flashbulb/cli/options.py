"""The command line's options, made from the configuration's dataclasses by tyro."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
from typing import Any, TypeVar

import tyro

from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.validation import validate


def whole_number(text: str) -> int:
    """Accepts 1000000, 1_000_000 and 1e6."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"{text!r} is not a whole number")
    return int(value)


Options = TypeVar("Options")

tyro_registry = tyro.constructors.ConstructorRegistry()


@tyro_registry.primitive_rule
def _whole_numbers(info: tyro.constructors.PrimitiveTypeInfo) -> Any:
    if info.type is not int:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda args: whole_number(args[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


def parse_train(arguments: list[str]) -> Config | None:
    """`ALGORITHM TASK [options]` as a configuration; None when only general help was asked for."""
    if not arguments or arguments[0] in ("-h", "--help"):
        if arguments:
            return None
        raise UsageError("algorithm: missing; say `flashbulb train ALGORITHM TASK`.")
    name, rest = arguments[0], arguments[1:]
    get_algorithm(name)
    wants_help = any(argument in ("-h", "--help") for argument in rest)
    if rest and not rest[0].startswith("-"):
        env, rest = rest[0], rest[1:]
    elif wants_help:
        env = "TASK"
    else:
        raise UsageError(f"env: missing; say `flashbulb train {name} TASK`.")
    default = configure(name, env)
    config = parse(Config, rest, f"flashbulb train {name} {env}", default)
    return validate(config)


def parse(kind: type[Options], arguments: list[str], program: str, default: Any = None) -> Options:
    """A dataclass from arguments. tyro parses; what it finds wrong becomes one sentence."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(
                kind,
                default=default,
                args=arguments,
                prog=program,
                registry=tyro_registry,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(_one_sentence(message.getvalue())) from None


def _one_sentence(box: str) -> str:
    """tyro draws a title, a message and help, in a box or with plain dashes as the terminal can show it; keep the
    message."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", box)
    title, *inside = [line.strip("│|╭╮╰╯ ") for line in text.splitlines() if line.strip()] or [""]
    if inside and not inside[0].strip("─-"):
        inside = inside[1:]  # the title is underlined
    ends = ("───", "---", "Argument help", "For full help")
    message = " ".join(itertools.takewhile(lambda line: not line.startswith(ends), inside)) or title.strip("─- ")
    meant = re.search(r"Perhaps you meant:\s*(--[\w.-]+)", " ".join(inside))
    hint = f"; perhaps you meant {meant[1]}" if meant else ""
    return re.sub(r"\s+", " ", message).strip(" .") + hint + "."
