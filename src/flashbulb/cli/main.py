"""The verbs of the command line. Heavy imports wait until a verb needs them, so that help is instant."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from flashbulb import __version__
from flashbulb.errors import Interrupted, RunError, UsageError

HELP = """\
Flashbulb: safe reinforcement learning that stays under its cost limit while it learns.

  flashbulb train ALGORITHM TASK [options]   train, for example:
                                          flashbulb train mice-cpo SafetyHalfCheetahVelocity-v1 --steps 1e6
  flashbulb train ALGORITHM --help           all options of an algorithm, with their defaults
  flashbulb resume RUN                    go on with a run that was interrupted, as if it had not been
  flashbulb runs [DIRECTORY]              what was trained, and how it went
  flashbulb plot RUN... [-o FILE]         learning curves, seeds as mean and confidence band
  flashbulb evaluate RUN [options]        return and cost on fresh seeds, with confidence intervals; --video, --json
  flashbulb bias RUN [options]            the cost critic against the true discounted cost, at visited states; --json
  flashbulb memory RUN [-o FILE]          the intrinsic cost over the arena, at several times of the run
  flashbulb report RUN... [-o FILE]       one HTML page of studies or runs: curves, numbers, replays, the memory's map
  flashbulb export RUN --to onnx          the policy as a file for other programs
  flashbulb check MODULE:FUNCTION         whether an environment of your own is ready to train, and if not, why
  flashbulb study [NAME] [options]        the paper's experiments, each as one command; --status, --scale
  flashbulb algorithms                       what can be trained
  flashbulb envs                          what it can be trained on
  flashbulb theory [FIGURE.png]           check every statement of the paper on small CMDPs with exact solutions
  flashbulb --version
"""


def main(arguments: list[str] | None = None) -> NoReturn:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = run(arguments)
    except UsageError as error:
        print(f"flashbulb: {_one_line(error)}", file=sys.stderr)
        code = 2
    except RunError as error:
        print(f"flashbulb: {_one_line(error)}", file=sys.stderr)
        code = 1
    except Interrupted as interrupted:
        print(f"flashbulb: {interrupted}", file=sys.stderr)
        code = interrupted.code
    except KeyboardInterrupt:
        print("flashbulb: interrupted.", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # a file that cannot be read or written, of all the ways there are
        where = f"{error.filename}: " if error.filename else ""
        print(f"flashbulb: {where}{error.strerror or _one_line(error)}.", file=sys.stderr)
        code = 1
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Dispatch on the verb; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if arguments else 2
    verb, rest = arguments[0], arguments[1:]
    if verb == "--version":
        print(f"flashbulb {__version__}")
        return 0
    if verb not in VERBS:
        raise UsageError(f"command: unknown command {verb!r}; the known ones are {', '.join(VERBS)}.")
    return VERBS[verb](rest)


def train(arguments: list[str]) -> int:
    from flashbulb.cli.options import parse_train

    config = parse_train(arguments)
    if config is None:
        print(HELP, end="")
        return 0
    from flashbulb.training.loop import train as run_training

    run_training(config)
    return 0


def in_module(verb: str) -> Callable[[list[str]], int]:
    """A verb that has a module of its own, imported when it is called."""

    def call(arguments: list[str]) -> int:
        code: int = importlib.import_module(f"flashbulb.cli.{verb}_command").main(arguments)
        return code

    return call


def algorithms(arguments: list[str]) -> int:
    from flashbulb.algorithms.registry import ALGORITHMS

    _no_more("algorithms", arguments)
    for name, algorithm in ALGORITHMS.items():
        print(f"{name:<24}{algorithm.summary}")
    return 0


def envs(arguments: list[str]) -> int:
    from flashbulb.envs.registry import env_ids

    _no_more("envs", arguments)
    print("\n".join(env_ids()))
    return 0


def theory(arguments: list[str]) -> int:
    from flashbulb.theory.statements import main as report

    return report(arguments)


def _one_line(error: Exception) -> str:
    """What a user typed may hold line breaks; the sentence about it does not."""
    return " ".join(str(error).split())


def _no_more(verb: str, arguments: list[str]) -> None:
    if arguments:
        raise UsageError(f"{verb}: takes no arguments, but was given {arguments[0]!r}.")


VERBS = {
    "train": train,
    **{
        verb: in_module(verb)
        for verb in ("resume", "runs", "plot", "evaluate", "bias", "memory", "export", "check", "study", "report")
    },
    "algorithms": algorithms,
    "envs": envs,
    "theory": theory,
}
