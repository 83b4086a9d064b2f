"""Parses command-line arguments into dataclasses with tyro, and prints tables at a usable width."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import math
import re
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tyro
from annotated_types import Ge
from tyro.conf import Fixed, Suppress, arg

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
LimitOption = Annotated[
    float,
    Ge(0),
    arg(
        metavar="FLOAT>=0",
        help="d: limit on the mean undiscounted cost of an episode; for several costs NAME=FLOAT, once for each.",
    ),
]

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
    env_kwargs, arguments = take_env_kwargs(arguments)
    limits, arguments = take_cost_limits(arguments)
    settings, arguments = _take_config_file(arguments)
    name, env, rest = _algorithm_and_env(arguments, settings)
    unused = get_algorithm(name).unused_settings
    for word in rest:
        setting = word.partition("=")[0].removeprefix("--").partition(".")[0].replace("-", "_")
        if word.startswith("--") and setting in unused:
            raise UsageError(f"{word.partition('=')[0]}: {name} does not use it; see `flashbulb train {name} --help`.")
    for setting in settings:
        if setting in unused:
            raise UsageError(f"{setting}: {name} does not use it; remove it from the file.")
    own = {setting: value for setting, value in settings.items() if setting not in ("algorithm", "env", "plugins")}
    if env_kwargs:
        given = own.get("env_kwargs")
        own["env_kwargs"] = {**(given if isinstance(given, dict) else {}), **env_kwargs}
    if limits:
        own["cost_limit"] = limits
    default = configure(name, env, **own)
    kind = _command_line(unused | ({"cost_limit"} if default.cost_names else set()))
    options = parse_options(kind, rest, f"flashbulb train {name} {env}", kind(**vars(default)))
    return validate(Config(**vars(options)))


def _algorithm_and_env(arguments: list[str], settings: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Algorithm and task, from the arguments or else from the settings of a file, and the other arguments."""
    if arguments and not arguments[0].startswith("-"):
        name, rest = arguments[0], arguments[1:]
    elif "algorithm" in settings:
        name, rest = str(settings["algorithm"]), arguments
    else:
        raise UsageError("algorithm: missing; say `flashbulb train ALGORITHM TASK`, or have it in the file.")
    get_algorithm(name)
    wants_help = any(argument in ("-h", "--help") for argument in rest)
    if rest and not rest[0].startswith("-"):
        env, rest = rest[0], rest[1:]
    elif "env" in settings:
        env = str(settings["env"])
    elif wants_help:
        env = "TASK"
    else:
        raise UsageError(f"env: missing; say `flashbulb train {name} TASK`.")
    return name, env, rest


def _command_line(unused: frozenset[str]) -> type[Config]:
    """`Config` as the command line of an algorithm has it: without the settings that have no effect, or that were read
    before; named limits are (`take_cost_limits`), so that here the limit is a number."""
    hints = typing.get_type_hints(Config, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(Config)}
    changed: list[Any] = [
        (name, Annotated[hints[name], Fixed, Suppress], _same_default(fields[name]))
        for name in fields
        if name in unused
    ]
    if "cost_limit" not in unused:
        changed.append(("cost_limit", LimitOption, _same_default(fields["cost_limit"])))
    kind: type[Config] = dataclasses.make_dataclass("Config", changed, bases=(Config,), frozen=True)
    kind.__doc__ = Config.__doc__
    return kind


def _same_default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)


def _take_config_file(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Take `--config FILE` out of the arguments and read the file."""
    for k, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if option != "--config":
            continue
        if not equals and k + 1 == len(arguments):
            raise UsageError("config: missing; say --config FILE.")
        from flashbulb.yaml_config import read_yaml

        used = 1 if equals else 2
        return read_yaml(Path(value if equals else arguments[k + 1])), arguments[:k] + arguments[k + used :]
    return {}, arguments


def take_env_kwargs(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Take `--env-kwargs.NAME VALUE` out of the arguments. A value is read as JSON if it is that, else as text."""
    kwargs: dict[str, Any] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--env-kwargs.").replace("-", "_")
        if not option.startswith("--env-kwargs."):
            rest.append(word)
            continue
        text = value if equals else next(words, None)
        if text is None or not name.isidentifier():
            raise UsageError(f"env_kwargs: {word!r} is not allowed; say --env-kwargs.NAME VALUE.")
        try:
            kwargs[name] = json.loads(text)
        except ValueError:
            kwargs[name] = text
    return kwargs, rest


def take_cost_limits(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Take `--cost-limit NAME=VALUE` out of the arguments, once for each of several costs."""
    limits: dict[str, Any] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option not in ("--cost-limit", "--cost_limit"):
            rest.append(word)
            continue
        text = value if equals else next(words, "")
        name, named, number = text.partition("=")
        if not named:
            rest += [word] if equals else [word, text] if text else [word]
            continue
        try:
            limits[name] = float(number)
        except ValueError:
            raise UsageError(f"cost_limit: {text!r} is not allowed; say --cost-limit {name}=NUMBER.") from None
    if limits and any(word.partition("=")[0] in ("--cost-limit", "--cost_limit") for word in rest):
        raise UsageError("cost_limit: say --cost-limit NUMBER, or NAME=NUMBER for each of several costs, and not both.")
    return limits, rest


def parse_options(kind: type[Options], arguments: list[str], program: str, default: Any = None) -> Options:
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
