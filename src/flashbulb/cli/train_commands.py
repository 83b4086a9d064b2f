"""Commands around a training run: train, resume, check, and the lists of algorithms, tasks and theory checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from flashbulb.cli.options import parse_options, parse_train
from flashbulb.config import PositiveInt
from flashbulb.errors import UsageError


def train_command(arguments: list[str]) -> int:
    """`flashbulb train ALGORITHM TASK`: train from the start."""
    config = parse_train(arguments)
    if config is None:
        from flashbulb.cli.main import HELP

        print(HELP, end="")
        return 0
    from flashbulb.training.loop import train

    train(config)
    return 0


@dataclass(frozen=True)
class ResumeOptions:
    """Continue from the newest good checkpoint to the steps that the run was started for.

    The result is bit for bit that of a run which was never interrupted.
    """

    run: Annotated[Path, Positional]
    """Directory of a run."""
    threads: PositiveInt | None = None
    """Threads for physics and nearest neighbours (default: as the run was started); results do not depend on it."""
    env: str | None = None
    """The run's environment, named again to allow its code to run; needed if it is module:function."""


def resume_command(arguments: list[str]) -> int:
    """`flashbulb resume RUN`: continue an interrupted run."""
    options = parse_options(ResumeOptions, arguments, "flashbulb resume")
    from flashbulb.training.loop import resume

    resume(options.run, threads=options.threads, trusted_env=options.env)
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
    options = parse_options(CheckOptions, arguments, "flashbulb check")
    from flashbulb.envs.env_checker import check
    from flashbulb.envs.registry import single

    findings = check(single(options.env), options.steps)
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

    _refuse_arguments("algorithms", arguments)
    for name, algorithm in ALGORITHMS.items():
        print(f"{name:<24}{algorithm.summary}")
    return 0


def envs_command(arguments: list[str]) -> int:
    """`flashbulb envs`: list the tasks."""
    from flashbulb.envs.registry import env_ids

    _refuse_arguments("envs", arguments)
    print("\n".join(env_ids()))
    return 0


def theory_command(arguments: list[str]) -> int:
    """`flashbulb theory`: check the paper's statements."""
    from flashbulb.theory import statements

    return statements.main(arguments)


def _refuse_arguments(command: str, arguments: list[str]) -> None:
    if arguments:
        raise UsageError(f"{command}: takes no arguments, but was given {arguments[0]!r}.")
