"""Exceptions for users: each message is one sentence, which the command line prints without a traceback."""


class UsageError(ValueError):
    """Bad input: the message names the field, its value and what is allowed. The command line exits with code 2."""


class RunError(RuntimeError):
    """A run cannot continue; its metrics and last checkpoint are kept. The command line exits with code 1."""


class Interrupted(KeyboardInterrupt):
    """A signal ended a run, after a complete iteration and a checkpoint; `code` is the exit code for the shell."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code
