"""Entry point of the command line: dispatches to a command and turns errors into one sentence and an exit code."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys
from typing import NoReturn

from flashbulb import __version__
from flashbulb.errors import Interrupted, RunError, UsageError
from flashbulb.shown_text import printable

HELP = """\
Flashbulb: safe reinforcement learning with a limit on the cost caused during training.

  flashbulb train ALGORITHM TASK [options]   train, for example:
                                             flashbulb train mice-cpo SafetyHalfCheetahVelocity-v1 --steps 1e6
  flashbulb train ALGORITHM --help           all options of an algorithm, with their defaults
  flashbulb train --config FILE.yaml         the same with settings of a file; options go on top of it
  flashbulb config RUN                       a run's configuration as YAML; or config ALGORITHM TASK [options]
  flashbulb resume RUN                       continue an interrupted run; the result is that of an uninterrupted one
  flashbulb resume RUN --steps 2e7           make a run longer
  flashbulb runs [DIRECTORY]                 list runs with their return and cost
  flashbulb plot RUN... [-o FILE]            learning curves; seeds as mean and confidence band
  flashbulb evaluate RUN [options]           return and cost on fresh seeds, with confidence intervals; --video, --json
  flashbulb bias RUN [options]               cost critic against the true discounted cost, at visited states; --json
  flashbulb memory RUN [-o FILE]             map of the intrinsic cost, at several times of the run
  flashbulb report RUN... [-o FILE]          one HTML page of studies or runs: curves, tables, replays, memory map
  flashbulb export RUN --to onnx             the policy as a file for other programs
  flashbulb verify RUN                       check that a run's files belong together and are undamaged
  flashbulb check MODULE:FUNCTION            check whether an environment of your own is ready to train
  flashbulb study [NAME] [options]           the paper's experiments, each as one command; --status, --scale
  flashbulb algorithms                       list the algorithms
  flashbulb envs                             list the tasks
  flashbulb theory [FIGURE.png]              check every statement of the paper on small CMDPs with exact solutions
  flashbulb --version

  --plugin MODULE, with any command          first import a module that registers algorithms, cost streams or tasks
"""

# Command -> module in flashbulb.cli that defines `<command>_command(arguments) -> exit code`.
COMMANDS = {
    "train": "train_commands",
    "resume": "train_commands",
    "runs": "run_commands",
    "plot": "run_commands",
    "evaluate": "policy_commands",
    "bias": "policy_commands",
    "memory": "run_commands",
    "report": "run_commands",
    "export": "policy_commands",
    "config": "train_commands",
    "verify": "verify_command",
    "check": "train_commands",
    "study": "study_command",
    "algorithms": "train_commands",
    "envs": "train_commands",
    "theory": "train_commands",
}
# Earlier spellings, which work with a note; remove in the release after 0.1.
RENAMED_COMMANDS = {"recipes": "algorithms"}
RENAMED_OPTIONS = {"--recipes": "--algorithms"}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 success, 1 a run or file failed, 2 bad input, 128 + n ended by signal n."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = run(arguments)
    except UsageError as error:
        print(f"flashbulb: {_one_line(error)}", file=sys.stderr)
        code = 2
    except RunError as error:
        print(f"flashbulb: {_one_line(error)}", file=sys.stderr)
        for raised in (error, error.__cause__):
            for note in getattr(raised, "__notes__", ()):  # the frames of a user's environment
                print(note, file=sys.stderr)
        code = 1
    except Interrupted as interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another Ctrl-C during the exit would print a traceback
        print(f"flashbulb: {interrupted}", file=sys.stderr)
        code = interrupted.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("flashbulb: interrupted.", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # the reader closed the pipe, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # a file that cannot be read or written
        where = printable(f"{error.filename}: ") if error.filename else ""
        print(f"flashbulb: {where}{error.strerror or _one_line(error)}.", file=sys.stderr)
        code = 1
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command that the first argument names and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"flashbulb {__version__}")
        return 0
    arguments = _load_plugins(arguments)
    command, *rest = _replace_old_spellings(arguments)
    if command not in COMMANDS:
        close = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {close[0]}? The" if close else "the"
        raise UsageError(f"command: unknown command {command!r}; {hint} known ones are {', '.join(COMMANDS)}.")
    module = importlib.import_module(f"flashbulb.cli.{COMMANDS[command]}")
    code: int = getattr(module, f"{command}_command")(rest)
    return code


def _load_plugins(arguments: list[str]) -> list[str]:
    """Import the modules named by `--plugin MODULE`, and return the other arguments."""
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, name = word.partition("=")
        if option != "--plugin":
            rest.append(word)
            continue
        name = name if equals else next(words, "")
        if not name:
            raise UsageError("plugin: missing; say --plugin MODULE.")
        from flashbulb.plugins import load_plugin

        load_plugin(name)
    if not rest:
        raise UsageError("command: missing; say `flashbulb COMMAND --plugin MODULE`.")
    return rest


def _replace_old_spellings(arguments: list[str]) -> list[str]:
    """Replace renamed commands and options by their new names, with a note for each on stderr."""
    command, *rest = arguments
    replaced = [RENAMED_COMMANDS.get(command, command)]
    for word in rest:
        option, equals, value = word.partition("=")
        replaced.append(RENAMED_OPTIONS.get(option, option) + equals + value)
    for old, new in zip(arguments, replaced, strict=True):
        if old != new:
            print(f"flashbulb: {old} is deprecated; it is now called {new}.", file=sys.stderr)
    return replaced


def _one_line(error: Exception) -> str:
    """The message without line breaks and control characters, which names in it may contain."""
    return printable(" ".join(str(error).split()))
