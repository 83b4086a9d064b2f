"""CSV files of a run: whole rows only, whatever stops the writer, and readable while they grow.

Every row begins with its iteration, so that a resumed run can remove the rows that it will write again. Rows are
written by the file's header: a file of an older version keeps its columns and gains those that are new.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np

from flashbulb.storage.checkpoint import write_whole

CsvRow = dict[str, float | int]

# Columns of format 1 under today's names.
RENAMED = {
    "cost_bias": "critic_bias_sampled",
    "cost_bias_unsafe": "critic_bias_sampled_unsafe",
    "critic_bias": "critic_bias_rollout",
    "critic_bias_low": "critic_bias_rollout_low",
    "critic_bias_high": "critic_bias_rollout_high",
    "critic_bias_risky": "critic_bias_rollout_risky",
    "critic_bias_low_risky": "critic_bias_rollout_risky_low",
    "critic_bias_high_risky": "critic_bias_rollout_risky_high",
    "member": "env",
}


class CsvLog:
    """Appends rows. They are with the operating system when `write` returns and on disk after `sync`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun = path.exists()
        self.columns = _header(whole_lines(path)) if self.begun else []

    def write(self, rows: list[CsvRow]) -> None:
        if not rows:
            return
        new = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in self.columns]
        if new and self.columns:
            self._add_columns(new)
        elif new:
            self.columns = new
        text = _text(self.columns, rows, header=not self.begun)
        # A file that has vanished is an error and not a new beginning, hence not mode "append".
        with self.path.open("r+b" if self.begun else "xb", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            left = text
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(end)  # works on a full disk, too
                raise
        self.begun = True

    def _add_columns(self, new: list[str]) -> None:
        """Rewrite the file with these columns after its own ones; they are empty in the rows that it has."""
        old = list(csv.reader(line.decode() for line in whole_lines(self.path)))[1:]
        columns = [*self.columns, *new]
        rows = [dict(zip(self.columns, values, strict=True)) for values in old]
        write_whole(self.path, _text(columns, rows, header=True))
        self.columns = columns

    def sync(self) -> None:
        """Flush to disk: after a loss of power no checkpoint may be ahead of the rows."""
        if self.begun:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def forget_from(self, iteration: int) -> None:
        """Remove the rows of that iteration and of later ones, and an incomplete last row."""
        if not self.begun:
            return
        lines = whole_lines(self.path)
        kept = lines[:1] + [line for line in lines[1:] if int(line.split(b",", 1)[0]) < iteration]
        if len(kept) > 1:
            os.truncate(self.path, sum(map(len, kept)))
        else:
            self.path.unlink()
            self.begun, self.columns = False, []


def _text(columns: list[str], rows: list[dict[str, float | int]] | list[dict[str, str]], header: bool) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns)
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _header(lines: list[bytes]) -> list[str]:
    """Names of the columns, as they are called today."""
    return [RENAMED.get(name, name) for name in next(csv.reader(line.decode() for line in lines[:1]), [])]


def whole_lines(path: Path) -> list[bytes]:
    return [line for line in Path(path).read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of a file that may still be growing; an empty field is NaN."""
    lines = whole_lines(path)
    names, rows = _header(lines), list(csv.reader(line.decode() for line in lines[1:]))
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {
        name: np.array([float(value or "nan") for value in column]) for name, column in zip(names, columns, strict=True)
    }


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
