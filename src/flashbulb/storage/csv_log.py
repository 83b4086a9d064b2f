"""CSV files of a run: whole rows only, whatever stops the writer, and readable while they grow.

Every row begins with its iteration, so that a resumed run can remove the rows that it will write again. Rows are
written by the file's header: a file of an older version keeps its columns and gains those that are new.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.errors import RunError, UsageError
from flashbulb.storage.safe_files import existing_for_writing, new_file, read_regular, write_whole

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
        self.columns = _header(path, whole_lines(path)) if self.begun else []
        self.size = path.stat().st_size if self.begun else 0
        self.rows = RowsHash(whole_lines(path)[1:] if self.begun else [])

    def write(self, rows: list[CsvRow]) -> None:
        if not rows:
            return
        new = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in self.columns]
        if new and self.columns:
            self._add_columns(new)
        elif new:
            self.columns = new
        text = _text(self.columns, rows, header=not self.begun)
        lines = text.splitlines(keepends=True)[0 if self.begun else 1 :]
        # A file that has vanished is an error and not a new beginning, hence not mode "append".
        with open(existing_for_writing(self.path) if self.begun else new_file(self.path), "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end != self.size:
                raise RunError(f"{self.path} has been changed by another process; its rows can no longer be trusted.")
            left = text
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(end)  # works on a full disk, too
                raise
        self.begun, self.size = True, self.size + len(text)
        self.rows.add(lines)

    def _add_columns(self, new: list[str]) -> None:
        """Rewrite the file with these columns after its own ones; they are empty in the rows that it has."""
        old = _fields(self.path, whole_lines(self.path))[1:]
        columns = [*self.columns, *new]
        rows = [dict(zip(self.columns, values, strict=True)) for values in old]
        self._replace(_text(columns, rows, header=True))
        self.columns = columns

    def _replace(self, content: bytes) -> None:
        write_whole(self.path, content)
        self.size, self.rows = len(content), RowsHash(content.splitlines(keepends=True)[1:])

    def seal(self) -> dict[str, Any]:
        """How many rows there are and what is in them, for `check_rows`."""
        return {"rows": self.rows.count, "columns": len(self.columns), "sha256": self.rows.seal(self.columns)}

    def sync(self) -> None:
        """Flush to disk: after a loss of power no checkpoint may be ahead of the rows."""
        if self.begun:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def forget_from(self, iteration: int) -> None:
        """Remove the rows of that iteration and of later ones, and an incomplete last row; the file as it was is kept
        beside it, with the suffix .old."""
        if not self.begun:
            return
        before, lines = read_regular(self.path), whole_lines(self.path)
        rows = zip(lines[1:], row_iterations(self.path), strict=True)
        kept = lines[:1] + [line for line, of in rows if of < iteration]
        content = b"".join(kept)
        if content == before and len(kept) > 1:
            return
        write_whole(self.path.with_name(self.path.name + ".old"), before)
        if len(kept) > 1:
            self._replace(content)
        else:
            self.path.unlink()
            self.begun, self.columns, self.size, self.rows = False, [], 0, RowsHash([])


class RowsHash:
    """SHA-256 of rows, in their order. Columns that a later version adds are empty in them and do not count."""

    def __init__(self, lines: list[bytes]) -> None:
        self.count, self._hash = 0, hashlib.sha256()
        self.add(lines)

    def add(self, lines: list[bytes]) -> None:
        self.count += len(lines)
        for line in lines:
            self._hash.update(line.rstrip(b"\r\n").rstrip(b",") + b"\n")

    def seal(self, columns: list[str]) -> str:
        """SHA-256 of the names of the columns and of the rows."""
        return hashlib.sha256(f"{columns} {self._hash.hexdigest()}".encode()).hexdigest()


def check_rows(path: Path, sealed: Mapping[str, Any], checkpoint: str) -> None:
    """Refuse a file whose first rows are not those that were there when the checkpoint was written."""
    if not sealed.get("rows"):
        return
    lines = whole_lines(path) if os.path.lexists(path) else []
    columns, rows = _header(path, lines)[: sealed["columns"]], lines[1 : 1 + sealed["rows"]]
    if len(rows) < sealed["rows"] or RowsHash(rows).seal(columns) != sealed["sha256"]:
        raise UsageError(
            f"run: {path} is damaged (its first {sealed['rows']} rows are not those of {checkpoint}); "
            "put it back as it was."
        )


def _text(columns: list[str], rows: list[dict[str, float | int]] | list[dict[str, str]], header: bool) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns)
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _header(path: Path, lines: list[bytes]) -> list[str]:
    """Names of the columns, as they are called today."""
    return [RENAMED.get(name, name) for row in _fields(path, lines[:1]) for name in row]


def _fields(path: Path, lines: list[bytes]) -> list[list[str]]:
    """The fields of lines; refused where they are no text, or one of them is longer than any that we write."""
    try:
        return list(csv.reader(line.decode() for line in lines))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"run: {path} is damaged (it is no CSV file: {error}); put it back as it was.") from None


def whole_lines(path: Path) -> list[bytes]:
    return [line for line in read_regular(Path(path)).splitlines(keepends=True) if line.endswith(b"\n")]


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of a file that may still be growing; an empty field is NaN."""
    lines = whole_lines(path)
    names, rows = _header(path, lines), _fields(path, lines[1:])
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {
        name: np.array([float(value or "nan") for value in column]) for name, column in zip(names, columns, strict=True)
    }


def row_iterations(path: Path) -> list[int]:
    """The iteration of every row, which is its first field; none where there is no file."""
    if not os.path.lexists(path):
        return []
    found = []
    for row, line in enumerate(whole_lines(path)[1:]):
        field = line.split(b",", 1)[0]
        if not re.fullmatch(b"[0-9]{1,18}", field):
            shown = repr(field[:20].decode(errors="replace"))
            raise UsageError(f"run: {path} is damaged (row {row + 1} begins with {shown}, which is no iteration).")
        found.append(int(field))
    return found


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
