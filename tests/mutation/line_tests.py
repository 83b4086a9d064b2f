"""Which tests run which lines of the package: a map made once per test file, kept until that file or the code changes.

A file of tests is run under coverage with each test as a context. What a fixture runs counts for all tests of the file,
because it may be shared. Compiled code leaves no trace, and neither does what runs at import: for such lines all tests
count that run anything of the module.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

TESTED = ("memory", "algorithms", "training")
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "flashbulb"


def test_files(module: str) -> list[Path]:
    """The files of tests that name a module, its own first, then by size: candidates to cover it."""
    package, stem = module.removesuffix(".py").split("/")
    found = [path for name in TESTED for path in sorted((ROOT / "tests" / name).glob("test_*.py"))]
    named = [path for path in found if re.search(rf"\b{stem}\b", path.read_text())]
    named += [path for path in found if path.name in ("test_mice_end_to_end.py", "test_loop.py") and path not in named]
    own = ROOT / "tests" / package / f"test_{stem}.py"
    return sorted(named, key=lambda path: (path != own, path.stat().st_size))


class LineTests:
    """The map of one test file: seconds of processor time of each test, and the tests of each line of each module."""

    def __init__(self, path: Path, place: Path) -> None:
        code = b"".join(p.read_bytes() for name in TESTED for p in sorted((SOURCE / name).glob("*.py")))
        digest = hashlib.sha256(path.read_bytes() + code).hexdigest()[:16]
        self.path, self.kept = path, place / f"{path.parent.name}-{path.stem}-{digest}.json"

    def load(self, record: Any) -> dict[str, Any]:
        """From the file that is kept, or by `record`, a function of the map that fills it in a process of its own."""
        if not self.kept.exists():
            record(self)
        if not self.kept.exists():  # it took too long
            self.kept.write_text(json.dumps({"seconds": {}, "lines": {}}))
        return json.loads(self.kept.read_text())

    def record(self) -> int:
        """Run the tests and keep the map; to be called in a fresh process, before the package is imported."""
        import coverage

        copy = Path(sys.path[0]) / "flashbulb"  # see `use_package`
        recorder = _Recorder(coverage.Coverage(data_file=None, source=[str(copy / name) for name in TESTED]))
        recorder.coverage.start()
        code = pytest.main([*OPTIONS, str(self.path)], plugins=[recorder])
        recorder.coverage.stop()
        data, lines = recorder.coverage.get_data(), {}
        for name in data.measured_files():
            module = "/".join(Path(name).parts[-2:])
            contexts = data.contexts_by_lineno(name)
            lines[module] = {str(line): sorted(set(tests) - {""}) for line, tests in contexts.items()}
        lines = {module: known for module, known in lines.items() if known}
        # A test that fails without a fault, or is skipped, could notice none.
        seconds = {test: took for test, took in recorder.seconds.items() if test in recorder.passed}
        self.kept.write_text(json.dumps({"seconds": seconds, "lines": lines}))
        return int(code)


# Processor time limits what a mutant may take (`Runner.fork`): on a busy machine a limit of the clock would kill them.
OPTIONS = ["-q", "--timeout=0", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", f"--rootdir={ROOT}"]


class _Recorder:
    """A pytest plugin: tells coverage which test runs, and takes its time."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.seconds, self.passed = coverage, {}, set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Any) -> Any:
        before = processor_seconds()
        result = yield
        self.seconds[item.nodeid] = round(processor_seconds() - before, 3)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        self.coverage.switch_context(item.nodeid.split("::")[0])
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        self.coverage.switch_context(item.nodeid)
        return (yield)


def processor_seconds() -> float:
    """Of this process and its children: a busy machine makes no test longer by it."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def choose_tests(module: str, lines: range, known: dict[str, Any], most: float) -> tuple[list[str], float]:
    """Tests that run one of the lines, the quickest first, of at most so many seconds together; and their seconds."""
    seen = known["lines"].get(module, {})
    tests = {test for line in lines for test in seen.get(str(line), ())}
    tests = tests or {test for found in seen.values() for test in found}
    seconds = {t: took for t, took in known["seconds"].items() if t in tests or t.split("::")[0] in tests}
    chosen, total = [], 0.0
    for test in sorted(seconds, key=lambda name: seconds[name]):
        if total + seconds[test] > most:
            break
        chosen.append(test)
        total += seconds[test]
    return chosen, total


def statement_lines(source: bytes, line: int) -> range:
    """The lines of the smallest statement around a line: coverage counts a statement by some of them only."""
    around = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            found = range(node.lineno, (node.end_lineno or 0) + 1)
            body = getattr(node, "body", None)
            if body:
                found = range(node.lineno, body[0].lineno)
            if line in found:
                around = found
    return around


def use_package(place: Path) -> None:
    """Import the package from there, in this process and in those that tests start."""
    sys.path[:0] = [str(place), str(ROOT)]
    os.environ["PYTHONPATH"] = str(place)
    os.chdir(ROOT)
