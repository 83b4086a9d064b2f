"""A CSV that survives: whole rows only, whatever stops the writer, and readable at any moment.

Every row begins with the iteration it belongs to, so that a resumed run can forget the rows it will write again.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np

Row = dict[str, float | int]


class CsvLog:
    """Appends rows. They are the operating system's when `write` returns and the disk's after `sync`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun = path.exists()

    def write(self, rows: list[Row]) -> None:
        if not rows:
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        if not self.begun:
            writer.writeheader()
        writer.writerows(rows)
        # A file that vanished is an error and not a new beginning, hence no "append".
        with self.path.open("r+b" if self.begun else "xb", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            left = text.getvalue().encode()
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(end)  # a full disk still lets go
                raise
        self.begun = True

    def sync(self) -> None:
        """After a loss of power, no checkpoint may know of rows that the disk does not."""
        if self.begun:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def forget_from(self, iteration: int) -> None:
        """Cut off the rows of that iteration and of later ones, and a last row that is not whole."""
        if not self.begun:
            return
        lines = whole_lines(self.path)
        kept = lines[:1] + [line for line in lines[1:] if int(line.split(b",", 1)[0]) < iteration]
        if len(kept) > 1:
            os.truncate(self.path, sum(map(len, kept)))
        else:
            self.path.unlink()
            self.begun = False


def whole_lines(path: Path) -> list[bytes]:
    return [line for line in Path(path).read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of a file that may still be growing."""
    rows = list(csv.reader(line.decode() for line in whole_lines(path)))
    if not rows:
        return {}
    columns = zip(*rows[1:], strict=True) if rows[1:] else ([] for _ in rows[0])
    return {name: np.array([float(value) for value in column]) for name, column in zip(rows[0], columns, strict=True)}


def recorded_iterations(path: Path) -> int:
    """How many iterations, from the first on without a gap, a metrics file has rows of."""
    if not path.exists():
        return 0
    count = 0
    for line in whole_lines(path)[1:]:
        if line.split(b",", 1)[0] != str(count).encode():
            break
        count += 1
    return count
