"""Which tests run which lines of the package: a map made once per test file, kept until that file changes.

A file of tests is run under coverage with each test as a context. What a fixture runs counts for all tests of the file,
because it may be shared. Lines are kept by their function and its text, so that a change of the code elsewhere leaves
the map valid; of a function that has changed all lines count. Compiled code leaves no trace, and neither does what runs
at import: for such lines all tests count that run anything of the module. And what JAX has traced once in a process
leaves none in later tests of the same file: the map says for sure which files run a line, but not that others of their
tests do not, which is why `choose_tests` returns both.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

OWN_SECONDS = 40.0  # for the tests of the file that mirrors a module
FEWEST = 3  # tests that are run however long they take
TESTED = ("memory", "algorithms", "training")
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "flashbulb"


# Tests elsewhere of what these packages do for others.
FURTHER = ("tests/test_cost_limits.py", "tests/test_cost_units.py", "tests/analysis/test_memory_snapshots.py")


def test_files() -> list[Path]:
    """The files of tests that are asked about a mutant."""
    own = [path for name in TESTED for path in sorted((ROOT / "tests" / name).glob("test_*.py"))]
    return own + [ROOT / name for name in FURTHER]


class Scope(NamedTuple):
    """A function, or what is in none."""

    name: str
    first: int  # line
    body: int  # first line of what runs when it is called
    last: int
    digest: str  # of its text


@functools.lru_cache(maxsize=100)
def scopes_of(source: bytes) -> list[Scope]:
    """The functions of a module, outer ones before inner ones."""
    found: list[Scope] = []
    lines = source.splitlines()

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if isinstance(child, ast.FunctionDef | ast.ClassDef) else name
            if isinstance(child, ast.FunctionDef):
                first, last = min([child.lineno, *(d.lineno for d in child.decorator_list)]), child.end_lineno or 0
                digest = hashlib.sha256(b"\n".join(lines[first - 1 : last])).hexdigest()[:8]
                found.append(Scope(inner, first, child.body[0].lineno, last, digest))
            visit(child, inner)

    visit(ast.parse(source), "")
    return found


def scope_of(source: bytes, line: int) -> Scope:
    """The innermost function around a line."""
    around = [scope for scope in scopes_of(source) if scope.first <= line <= scope.last]
    return around[-1] if around else Scope("", 1, 1, 0, "")


class LineTests:
    """The map of one test file: seconds of processor time of each test, and the tests of each line of each function."""

    def __init__(self, path: Path, place: Path) -> None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        self.path, self.kept = path, place / f"{path.parent.name}-{path.stem}-{digest}.json"

    def load(self, record: Callable[[LineTests], Any]) -> dict[str, Any]:
        """From the file that is kept, or by `record`, a function of the map that fills it in a process of its own."""
        if not self.kept.exists():
            record(self)
        if not self.kept.exists():  # it took too long
            self.kept.write_text(json.dumps({"seconds": {}, "scopes": {}}))
        return json.loads(self.kept.read_text())

    def record(self) -> int:
        """Run the tests and keep the map; to be called in a fresh process, before the package is imported."""
        import coverage

        copy = Path(sys.path[0]) / "flashbulb"  # see `use_package`
        recorder = _Recorder(coverage.Coverage(data_file=None, source=[str(copy / name) for name in TESTED]))
        recorder.coverage.start()
        code = pytest.main([*OPTIONS, str(self.path)], plugins=[recorder])
        recorder.coverage.stop()
        data, scopes = recorder.coverage.get_data(), {}
        for name in data.measured_files():
            contexts = {line: sorted(set(tests) - {""}) for line, tests in data.contexts_by_lineno(name).items()}
            found = _by_scope(Path(name).read_bytes(), {line: tests for line, tests in contexts.items() if tests})
            if found:
                scopes["/".join(Path(name).parts[-2:])] = found
        # A test that fails without a fault, or is skipped, could notice none.
        seconds = {test: took for test, took in recorder.seconds.items() if test in recorder.passed}
        self.kept.write_text(json.dumps({"seconds": seconds, "scopes": scopes}))
        return int(code)


def _by_scope(source: bytes, contexts: dict[int, list[str]]) -> dict[str, dict[str, Any]]:
    scopes: dict[str, dict[str, Any]] = {}
    for line, tests in contexts.items():
        scope = scope_of(source, line)
        if not scope.body <= line <= scope.last:  # runs at import, in whichever test came first
            continue
        known = scopes.setdefault(scope.name, {"digest": scope.digest, "lines": {}})
        known["lines"][str(line - scope.first)] = tests
    return scopes


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


def choose_tests(module: str, source: bytes, line: int, maps: list[dict[str, Any]], most: float) -> list[list[str]]:
    """Tests to run for a fault in a line: those that are known to run it, then, of code that JAX may have traced, the
    others of their files.

    The module's own unit tests first, then the quickest; of the others at most so many seconds together, but three in
    any case.
    """
    left = {"own": OWN_SECONDS, "others": most}
    own = f"tests/{Path(module).parent}/test_{Path(module).stem}.py::"
    running = [_running(known["scopes"].get(module, {}), source, line) for known in maps]
    if not any(running):
        running = [_all(known["scopes"].get(module, {})) for known in maps]
    sure: dict[str, float] = {}
    rest: dict[str, float] = {}
    for known, tests in zip(maps, running, strict=True):
        for test, took in known["seconds"].items() if tests else ():
            (sure if test in tests or test.split("::")[0] in tests else rest)[test] = took
    stages = []
    for seconds in (sure, rest if b"import jax" in source else {}):
        stages.append([])
        for test in sorted(seconds, key=lambda name: (not name.startswith(own), seconds[name])):
            room = "own" if test.startswith(own) else "others"
            if seconds[test] <= left[room] or sum(map(len, stages)) < FEWEST:
                stages[-1].append(test)
                left[room] -= seconds[test]
    return stages


def _running(scopes: dict[str, Any], source: bytes, line: int) -> set[str]:
    """The tests that run one of the lines of a statement."""
    scope = scope_of(source, line)
    known = scopes.get(scope.name)
    if known is None:
        return set()
    if known["digest"] != scope.digest or line < scope.body:
        return _all({scope.name: known})
    lines = (str(number - scope.first) for number in statement_lines(source, line))
    return {test for number in lines for test in known["lines"].get(number, ())}


def _all(scopes: dict[str, Any]) -> set[str]:
    return {test for known in scopes.values() for tests in known["lines"].values() for test in tests}


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
