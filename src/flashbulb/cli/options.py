"""Parses command-line arguments into dataclasses with tyro, and prints tables at a usable width."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
from typing import TYPE_CHECKING, Any, TypeVar

import tyro

from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.validation import conform, validate

if TYPE_CHECKING:
    from rich.console import Console


def whole_number(text: str) -> int:
    """Parse 1000000, 1_000_000 or 1e6; digits are read exactly, because a float rounds above 2**53."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():
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
    """Parse `ALGORITHM TASK [options]` into a configuration; None when general help was requested."""
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
    return validate(parse(Config, rest, f"flashbulb train {name} {env}", configure(name, env)))


def parse(kind: type[Options], arguments: list[str], program: str, default: Any = None) -> Options:
    """Parse arguments into a dataclass and check its bounds; tyro's error box becomes one sentence."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            options = tyro.cli(
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
    return conform(options)


def wide_console() -> Console:
    """A console for tables, which does not wrap lines when writing to a file or a pipe."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=240)


def _one_sentence(box: str) -> str:
    """Extract the message from tyro's error box.

    tyro prints a title, a message and help, in a box or with dashes. Its hooks for parse errors are private and differ
    between versions, so the text is read instead.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", box)
    title, *inside = [line.strip("│|╭╮╰╯ ") for line in text.splitlines() if line.strip()] or [""]
    if inside and not inside[0].strip("─-"):
        inside = inside[1:]  # the line under the title
    ends = ("───", "---", "Argument help", "For full help")
    message = " ".join(itertools.takewhile(lambda line: not line.startswith(ends), inside)) or title.strip("─- ")
    meant = re.search(r"Perhaps you meant:\s*(--[\w.-]+)", " ".join(inside))
    hint = f"; perhaps you meant {meant[1]}" if meant else ""
    return re.sub(r"\s+", " ", message).strip(" .") + hint + "."
