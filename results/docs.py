"""Makes the tables and figures of the docs again from the data: `python -m results.docs`.

A page names the command of a table or figure in a comment, such as

    <!-- python -m results.effects cpo mice-cpo -->

and the table that the command prints follows after an empty line. tests/test_results.py fails where a page has another.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMAND = re.compile(r"(<!-- python -m (results\.\w+) ?(.*?) -->\n)(?:\n(?:\|.*\n)+)?")
FIGURES = ("results.figures", "results.frontier")  # they print nothing


def main() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(refreshed(text), encoding="utf-8")
        for _, module, arguments in COMMAND.findall(text):
            if module in FIGURES:
                output_of(module, arguments)


def pages() -> list[Path]:
    texts = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in texts if COMMAND.search(page.read_text(encoding="utf-8"))]


def refreshed(text: str) -> str:
    """The text of a page with its tables as the data have them."""

    def table(found: re.Match[str]) -> str:
        comment, module, arguments = found.groups()
        return comment if module in FIGURES else f"{comment}\n{output_of(module, arguments)}"

    return COMMAND.sub(table, text)


def output_of(module: str, arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        importlib.import_module(module).main(*shlex.split(arguments))
    return output.getvalue()


if __name__ == "__main__":
    main()
