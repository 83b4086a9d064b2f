"""`make mutants`: put faults into the code, one at a time, and see whether a test fails.

    python -m tests.mutation --sample 150 --seed 0

First the tests are run once under coverage, file by file, to learn which test runs which line and how long it takes;
that is kept. Then each mutant is written into a copy of the package, and the tests that run its line are started, the
quickest first, in a fork of this process, which has imported the libraries but not the package. Results go to a CSV
file at once; what is in there already is not run again. mutmut leaves out functions with decorators, which all of our
compiled ones have, and cosmic-ray runs the whole suite for each mutant; so this is our own.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.line_tests import (
    OPTIONS,
    ROOT,
    SOURCE,
    TESTED,
    LineTests,
    choose_tests,
    use_package,
)
from tests.mutation.line_tests import test_files as files_of
from tests.mutation.operators import Mutant, mutants_of, sample

COLUMNS = ("module", "line", "operator", "before", "after", "outcome", "tests", "seconds", "key")
KILLED = ("killed", "timeout")
MOST_SECONDS = 60.0  # of processor time, of the tests of one mutant (`--most`)
GRACE = 60.0  # more that they may take: what a fault changes is compiled anew
STANDSTILL = 60.0  # seconds: a mutant that uses no processor time for so long is stuck
LIBRARIES = ("jax", "optax", "numba", "scipy.stats", "scipy.optimize", "gymnasium", "mujoco", "matplotlib.figure",
             "rich.console", "safetensors.numpy", "tensorboardX", "hypothesis", "coverage", "yaml")  # fmt: skip


def all_mutants() -> list[Mutant]:
    paths = [path for package in TESTED for path in sorted((SOURCE / package).glob("*.py"))]
    return [mutant for path in paths for mutant in mutants_of(f"{path.parent.name}/{path.name}", path.read_bytes())]


class Runner:
    """A copy of the package to put faults into, and processes to run tests on it."""

    def __init__(self, place: Path, most: float = MOST_SECONDS) -> None:
        self.place, self.most = place, most
        (place / "maps").mkdir(parents=True, exist_ok=True)
        self.lock = (place / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two would mutate the same copy
        except BlockingIOError:
            raise SystemExit(f"another process is at work in {place}") from None
        self.package = place / "src" / "flashbulb"
        mirror(SOURCE, self.package)
        self.maps: list[dict[str, Any]] = []

    def record(self) -> None:
        """Learn which tests run which lines, or read what is known of it."""
        for path in files_of():
            known = LineTests(path, self.place / "maps")
            if not known.kept.exists():
                print(f"recording {path.relative_to(ROOT)}", flush=True)
            self.maps.append(known.load(lambda known: self.fork(known.record, 900)))

    def fork(self, work: Callable[[], int], seconds: float) -> int | None:
        """The exit code of `work` in a process of its own (negative after a crash), or None if it took more processor
        time or stood still."""
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            output = os.open(self.place / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            code = 3
            try:
                use_package(self.package.parent)
                code = work()
            finally:
                os._exit(code)
        ticks, looked = -1, time.monotonic()
        while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
            time.sleep(0.1)
            if time.monotonic() - looked > STANDSTILL:
                before, ticks, looked = ticks, _ticks(child), time.monotonic()
                if ticks == before:
                    break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with what its tests have left running
        if done[0] == 0:
            os.waitpid(child, 0)
            return None
        code = os.waitstatus_to_exitcode(done[1])
        return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code

    def outcome(self, mutant: Mutant) -> tuple[str, int]:
        """killed, timeout, survived or untested; and the number of tests that were chosen."""
        path = self.package / mutant.module
        source = path.read_bytes()
        stages, code = choose_tests(mutant.module, source, mutant.line, self.maps, self.most), None
        with self.mutated(path, mutant.apply(source)):
            for stage in filter(None, stages):
                code = self.fork(lambda tests=stage: int(pytest.main([*OPTIONS, "-x", *tests])), GRACE + 2 * self.most)
                if code in (3, 5):  # pytest itself failed, or found none of the tests
                    raise RuntimeError((self.place / "output.txt").read_text())
                if code == 4:  # the fault breaks an import, or the map names tests that are no more
                    break
                if code != 0:
                    return "timeout" if code is None else "killed", len(stage)
        if code == 4:
            if self.fork(lambda: int(pytest.main([*OPTIONS, "--collect-only", *stage])), 600) != 0:
                raise RuntimeError("tests have changed since the maps were made; start again")
            return "killed", len(stage)
        count = sum(map(len, stages))
        return "survived" if count else "untested", count

    @contextlib.contextmanager
    def mutated(self, path: Path, text: bytes) -> Iterator[None]:
        """Another text in a file of the copy. What Python and Numba have compiled of it may not hide that."""
        source, changed = path.read_bytes(), path.stat().st_mtime_ns
        compiled = {file: file.read_bytes() for file in (path.parent / "__pycache__").glob(f"{path.stem}.*")}
        for file in compiled:
            file.unlink()
        path.write_bytes(text)
        yield
        path.write_bytes(source)
        os.utime(path, ns=(changed, changed))
        for file in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            file.unlink()
        for file, content in compiled.items():
            file.write_bytes(content)


def _ticks(group: int) -> int:
    """Processor time that the processes of a group have used."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = path.read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12]) if int(fields[2]) == group else 0
    return total


def mirror(source: Path, copy: Path) -> None:
    """Make the copy's files those of the source, but let it keep what Numba has compiled of files that are the same."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    there = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
    for name in there - wanted:
        if name.suffix not in (".nbi", ".nbc"):
            (copy / name).unlink()
    for name in wanted:
        compiled = name.suffix in (".nbi", ".nbc")
        if name not in there or (not compiled and (copy / name).read_bytes() != (source / name).read_bytes()):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, copy / name)


def run(chosen: list[Mutant], results: Path, runner: Runner, seconds: float, again: bool) -> list[dict[str, str]]:
    """The rows of these mutants, those of an earlier call included; no new one is begun after so many seconds.

    With `again`, those that were not killed and are not explained are run once more: there may be new tests.
    """
    made = {mutant.key for mutant in all_mutants()}  # what has been found out about code that is no more is dropped
    known = {row["key"]: row for row in read(results) if row["key"] in made}
    settled = {key for key, row in known.items() if row["outcome"] in KILLED or not again or key in explained()}
    begun = time.monotonic()
    runner.record()
    for mutant in chosen:
        if mutant.key in settled or time.monotonic() - begun > seconds:
            continue
        started = time.monotonic()
        outcome, tests = runner.outcome(mutant)
        texts = (" ".join(text.split()) for text in (mutant.before, mutant.after))
        cells = (mutant.module, mutant.line, mutant.operator, *texts, outcome, tests)
        cells = (*cells, f"{time.monotonic() - started:.0f}", mutant.key)
        known[mutant.key] = dict(zip(COLUMNS, map(str, cells), strict=True))
        write(results, list(known.values()))
        took = f"{cells[7]:>3} s"
        print(
            f"{outcome:9} {took} {mutant.module}:{mutant.line} {mutant.operator}: {cells[3]} -> {cells[4]}", flush=True
        )
    return [known[mutant.key] for mutant in chosen if mutant.key in known]


def explained() -> set[str]:
    """The keys of the survivors that survivors.md explains."""
    text = (Path(__file__).parent / "survivors.md").read_text()
    return {line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")}


def read(results: Path) -> list[dict[str, str]]:
    if not results.exists():
        return []
    with results.open(newline="") as file:
        return list(csv.DictReader(file))


def write(results: Path, rows: list[dict[str, str]]) -> None:
    with results.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["module"], int(row["line"]), row["key"])))


def table(rows: list[dict[str, str]]) -> str:
    """Killed and surviving mutants by module and package, as Markdown."""
    lines = ["| module | mutants | killed | survived | untested |", "| --- | ---: | ---: | ---: | ---: |"]
    modules = sorted({row["module"] for row in rows})
    for name in (*modules, *(f"{package}/" for package in TESTED), ""):
        found = [row["outcome"] for row in rows if row["module"].startswith(name)]
        if found:
            killed = sum(outcome in KILLED for outcome in found)
            counts = len(found), killed, found.count("survived"), found.count("untested")
            lines.append(f"| {name or 'all'} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def page(rows: list[dict[str, str]], seed: int) -> str:
    """The table with what it was made of."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    killed = sum(row["outcome"] in KILLED for row in rows)
    return (
        f"# Mutants\n\nOf {len(rows)} faults, put into the code one at a time, the tests noticed {killed} "
        f"({100 * killed / max(len(rows), 1):.0f} %).\nEach is in `results/mutants.csv`; those that live are explained "
        f"in `survivors.md`.\nMade by `make mutants SAMPLE={len(rows)} SEED={seed}` at commit {commit}.\n\n"
        f"{table(rows)}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after so many seconds")
    parser.add_argument("--most", type=float, default=MOST_SECONDS, help="seconds of the tests of one mutant")
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "mutants.csv")
    parser.add_argument("--table", type=Path, help="a Markdown file for the counts by module")
    parser.add_argument("--place", type=Path, default=ROOT / ".mutants", help="for the copy and what is known")
    parser.add_argument("--only", default="", help="the beginning of a module's name, such as memory/balance")
    arguments = parser.parse_args()
    prepare()
    mutants = [mutant for mutant in all_mutants() if mutant.module.startswith(arguments.only)]
    chosen = sample(mutants, arguments.sample, arguments.seed)
    rows = run(chosen, arguments.results, Runner(arguments.place, arguments.most), arguments.seconds, arguments.again)
    print(table(rows))
    if arguments.table is not None:
        arguments.table.write_text(page(rows, arguments.seed))
    return 0


def prepare() -> None:
    """Import what every fork needs, but nothing of the package, and compute nothing."""
    sys.dont_write_bytecode = True  # Python tells versions of a file apart by the second
    import tests.conftest  # noqa: F401  (JAX's cache, before JAX)

    for name in LIBRARIES:
        __import__(name)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="hypothesis-")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


if __name__ == "__main__":
    sys.exit(main())
