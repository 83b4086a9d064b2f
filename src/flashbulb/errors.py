"""The exceptions that a user may meet: each is one sentence, and the command line shows it without a traceback."""


class UsageError(ValueError):
    """Names the field, its value and what is allowed. The command line prints it and exits with code 2."""


class RunError(RuntimeError):
    """A run cannot go on: one sentence says why. Its metrics and last checkpoint stay where they are."""


class Interrupted(KeyboardInterrupt):
    """A signal ended a run, after a whole iteration and a checkpoint; `code` is the exit code that shells expect."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code
