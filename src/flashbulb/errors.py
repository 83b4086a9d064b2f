"""The one exception that means "the user asked for something that cannot be": one sentence, no traceback."""


class UsageError(ValueError):
    """Names the field, its value and what is allowed. The command line prints it and exits with code 2."""


class RunError(RuntimeError):
    """A run cannot go on: one sentence says why. Its metrics and last checkpoint stay where they are."""
