"""Commands around a training run: train, resume, check, and the lists of algorithms, tasks and theory checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from flashbulb.cli.options import parse_options, parse_train, take_env_kwargs
from flashbulb.config import PositiveInt
from flashbulb.errors import UsageError
from flashbulb.plugins import load_installed
from flashbulb.storage.run_identity import refuse_taken_name
from flashbulb.training.graceful_stop import graceful_stop


def train_command(arguments: list[str]) -> int:
    """`flashbulb train ALGORITHM TASK`: train from the start."""
    config = parse_train(arguments)
    if config is None:
        from flashbulb.cli.main import HELP

        print(HELP, end="")
        return 0
    refuse_taken_name(config)  # before the seconds that it takes to import JAX
    with graceful_stop() as stop:
        from flashbulb.training.loop import train

        if stop.signal is not None:
            raise KeyboardInterrupt
        train(config)
    return 0


def config_command(arguments: list[str]) -> int:
    """`flashbulb config RUN`, or `flashbulb config ALGORITHM TASK [options]`: the configuration as YAML."""
    from flashbulb.algorithms.registry import get_algorithm
    from flashbulb.storage.run_directory import load_config
    from flashbulb.yaml_config import config_to_yaml

    if len(arguments) == 1 and not arguments[0].startswith("-"):
        config = load_config(Path(arguments[0]))
    else:
        parsed = parse_train(arguments)
        if parsed is None:
            print("flashbulb config RUN\nflashbulb config ALGORITHM TASK [options of train]")
            return 0
        config = parsed
    print(config_to_yaml(config, get_algorithm(config.algorithm).unused_settings), end="")
    return 0


@dataclass(frozen=True)
class ResumeOptions:
    """Continue from the newest good checkpoint to the steps that the run was started for, or to --steps.

    Without --steps the result is bit for bit that of a run which was never interrupted.
    """

    run: Annotated[Path, Positional]
    """Directory of a run."""
    threads: PositiveInt | None = None
    """Threads for physics and nearest neighbours (default: as the run was started); results do not depend on it."""
    steps: PositiveInt | None = None
    """Steps of the whole run, more than it was started for (default: as the run was started)."""
    env: str | None = None
    """The run's environment, named again to allow its code to run; needed if it is module:function."""


def resume_command(arguments: list[str]) -> int:
    """`flashbulb resume RUN`: continue an interrupted run."""
    options = parse_options(ResumeOptions, arguments, "flashbulb resume")
    with graceful_stop() as stop:
        from flashbulb.training.loop import resume

        if stop.signal is not None:
            raise KeyboardInterrupt
        resume(options.run, threads=options.threads, steps=options.steps, trusted_env=options.env)
    return 0


@dataclass(frozen=True)
class CheckOptions:
    """Run an environment with random actions and report what is missing or wrong."""

    env: Annotated[str, Positional]
    """module:function that makes the environment, or an id that Gymnasium knows."""
    steps: PositiveInt = 10_000
    """Maximum number of steps; it stops earlier once three episodes have ended."""


def check_command(arguments: list[str]) -> int:
    """`flashbulb check module:function`: report whether an environment is ready to train."""
    env_kwargs, arguments = take_env_kwargs(arguments)
    options = parse_options(CheckOptions, arguments, "flashbulb check")
    from flashbulb.envs.env_checker import check
    from flashbulb.envs.registry import single

    findings = check(single(options.env), options.steps, env_kwargs)
    for note in findings.notes:
        print(f"Note: {note}")
    if not findings.problems:
        print(f"{options.env} is ready to train: flashbulb train mice-cpo {options.env}")
        return 0
    print(f"{options.env} is not ready to train:")
    for number, problem in enumerate(findings.problems, start=1):
        print(f"  {number}. {problem}")
    return 1


def algorithms_command(arguments: list[str]) -> int:
    """`flashbulb algorithms`: list the algorithms."""
    from flashbulb.algorithms.registry import ALGORITHMS
    from flashbulb.algorithms.stream_registry import outside_streams

    _refuse_arguments("algorithms", arguments)
    load_installed()
    for name, algorithm in ALGORITHMS.items():
        print(f"{name:<24}{algorithm.summary}")
    composed = ["mice-X", "mice-X-salient", "mice-X-no-projection", "mice-X-authors", "constant-N-X"]
    composed += [f"{stream}-X" for stream in outside_streams()]
    print(f"\nFor any X with a cost critic also: {', '.join(composed)}")
    return 0


def envs_command(arguments: list[str]) -> int:
    """`flashbulb envs`: list the tasks."""
    from flashbulb.envs.registry import env_ids

    _refuse_arguments("envs", arguments)
    load_installed()
    print("\n".join(env_ids()))
    return 0


def theory_command(arguments: list[str]) -> int:
    """`flashbulb theory`: check the paper's statements."""
    from flashbulb.theory import statements

    return statements.main(arguments)


def _refuse_arguments(command: str, arguments: list[str]) -> None:
    if arguments:
        raise UsageError(f"{command}: takes no arguments, but was given {arguments[0]!r}.")
