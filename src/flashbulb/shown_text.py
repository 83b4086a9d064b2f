"""Text from files of strangers, made fit for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def printable(text: str) -> str:
    """The text with control characters, such as those that move the cursor or change colours, written as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def note_all(sentences: Iterable[str]) -> None:
    """Print sentences on stderr, one line each."""
    for sentence in sentences:
        print(printable(f"flashbulb: {sentence}"), file=sys.stderr)
