"""`flashbulb check module:function`: is this environment ready, and if not, why not."""

from __future__ import annotations

from dataclasses import dataclass

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class CheckOptions:
    """Run an environment with random actions and say in plain words what is missing or wrong."""

    env: tyro.conf.Positional[str]
    """module:function that makes it, or an id that Gymnasium knows."""
    steps: int = 10_000
    """Most steps to take; it stops earlier once three episodes have ended."""


def main(arguments: list[str]) -> int:
    options = parse(CheckOptions, arguments, "flashbulb check")
    if options.steps < 1:
        raise UsageError(f"steps: {options.steps} is not allowed; it must be a whole number of at least 1.")
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
