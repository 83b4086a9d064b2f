"""The faults of mutation testing are what they say, and a fixed sample of them is noticed."""

import ast
import csv
import subprocess
import sys
from collections import Counter

import pytest

from tests.mutation.__main__ import KILLED, explained, mirror, read, table
from tests.mutation.line_tests import ROOT, choose_tests, scope_of, statement_lines
from tests.mutation.operators import mutants_of, sample

SOURCE = b'''
"""Not 1 + 1."""
LIMIT = 2.5


def f(x: int | None, y: float = 0.5) -> float:
    """Not x > 1."""
    if x is None or y > 1:
        raise ValueError("not 1" + f"{x + 1}")
    total = -x
    total += min(x, y) * 3
    out[0] = total  # not 7 - 1
    show(max(x, y), z.reshape(-1, x), strict=True)
    return total
'''
EXPECTED = {
    ("constant", "2.5", "5.0"), ("constant", "0.5", "1.0"),
    ("condition", "x is None or y > 1", "not (x is None or y > 1)"),
    ("boolean", "or", "and"), ("removed term", "x is None or y > 1", "(x is None)"),
    ("removed term", "x is None or y > 1", "(y > 1)"), ("comparison", "is", "is not"),
    ("comparison", ">", ">="), ("comparison", ">", "<="), ("constant", "1", "2"),
    ("sign", "-x", "(x)"), ("arithmetic", "+=", "-="),
    ("removed statement", "total += min(x, y) * 3", "pass"), ("name", "min", "max"),
    ("arithmetic", "*", "/"),
    ("removed term", "min(x, y) * 3", "(min(x, y))"), ("removed term", "min(x, y) * 3", "(3)"),
    ("constant", "3", "4"), ("removed statement", "out[0] = total", "pass"),
    ("name", "max", "min"), ("swapped arguments", "-1, x", "x, -1"), ("sign", "-1", "(1)"),
    ("swapped arguments", "max(x, y), z.reshape(-1, x)", "z.reshape(-1, x), max(x, y)"),
    ("removed statement", "show(max(x, y), z.reshape(-1, x), strict=True)", "pass"), ("return", "total", "None"),
}  # fmt: skip


def test_every_fault_is_found_and_nothing_that_only_speaks():
    found = mutants_of("m.py", SOURCE)
    assert {(m.operator, m.before, m.after) for m in found} == EXPECTED
    assert len(found) == len(EXPECTED)
    assert len({m.key for m in found}) == len(found)
    for mutant in found:
        changed = mutant.apply(SOURCE)
        ast.parse(changed)
        before, after = (text.decode().splitlines() for text in (SOURCE, changed))
        assert [n + 1 for n, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [mutant.line]


def test_a_mutant_keeps_its_key_when_lines_move():
    moved = b"import math\n\n" + SOURCE
    assert [m.key for m in mutants_of("m.py", SOURCE)] == [m.key for m in mutants_of("m.py", moved)]


def test_a_sample_is_spread_over_packages_and_modules_and_fixed_by_its_seed():
    names = ("memory/balance.py", "algorithms/cpo.py", "algorithms/critics.py")
    mutants = [m for name in names for m in mutants_of(name, SOURCE)]
    chosen = sample(mutants, 20, seed=3)
    assert sorted(Counter(m.module for m in chosen).values()) == [5, 5, 10]
    assert sum(m.module.startswith("memory/") for m in chosen) == 10
    assert sample(mutants[::-1], 20, seed=3) == chosen
    assert sample(mutants, 10, seed=3) == chosen[:10]
    assert sample(mutants, 20, seed=4) != chosen
    assert len(sample(mutants, 10_000, seed=3)) == len(mutants)


CODE = b"""import jax


def f(a):
    if a:
        g(1,
          2)
    return a
"""
CHANGED = CODE.replace(b"return a", b"return b")


def test_tests_are_chosen_by_line_the_quickest_first():
    def known(lines, seconds, code=CODE):
        digest = scope_of(code, 5).digest
        return {"scopes": {"m.py": {".f": {"digest": digest, "lines": lines}}}, "seconds": seconds}

    first = known({"1": ["t.py::a", "t.py::b"], "2": ["t.py::b"]}, {"t.py::a": 4.0, "t.py::b": 1.0, "t.py::c": 2.0})
    second = known({"1": ["u.py"]}, {"u.py::d": 3.0})  # run by a fixture
    maps = [first, second]
    assert choose_tests("m.py", CODE, 5, maps, 20.0) == [["t.py::b", "u.py::d", "t.py::a"], ["t.py::c"]]
    assert choose_tests("m.py", CODE, 5, maps, 5.0) == [["t.py::b", "u.py::d", "t.py::a"], []]
    assert choose_tests("m.py", CODE, 7, maps, 20.0) == [["t.py::b"], ["t.py::c", "t.py::a"]]  # of its statement
    every = [["t.py::b", "u.py::d", "t.py::a"], ["t.py::c"]]
    assert choose_tests("m.py", CODE, 8, maps, 20.0) == every  # no trace: compiled
    assert choose_tests("m.py", CODE, 1, maps, 20.0) == every  # at import
    assert choose_tests("m.py", CHANGED, 6, maps, 20.0) == every  # it was another function then
    assert choose_tests("m.py", b"# moved\n" + CODE, 7, maps, 20.0) == [["t.py::b"], ["t.py::c", "t.py::a"]]
    plain = CODE.replace(b"import jax", b"import re")
    assert choose_tests("m.py", plain, 7, maps, 20.0) == [["t.py::b"], []]
    assert choose_tests("n.py", CODE, 5, maps, 20.0) == [[], []]


def test_a_modules_own_tests_come_first_and_have_their_own_time():
    module, own = "memory/balance.py", "tests/memory/test_balance.py"
    tests = [f"{own}::slow", "a.py::a", "a.py::b", "a.py::c"]
    scopes = {module: {".f": {"digest": scope_of(CODE, 5).digest, "lines": {"1": tests}}}}
    maps = [{"scopes": scopes, "seconds": dict(zip(tests, [30.0, 1.0, 2.0, 3.0], strict=True))}]
    assert choose_tests(module, CODE, 5, maps, 4.0) == [tests[:3], []]


def test_a_statement_has_the_lines_of_its_own_head_only():
    assert statement_lines(b"if a:\n    f(1,\n      2)\n", 3) == range(2, 4)
    assert statement_lines(b"if a:\n    f(1,\n      2)\n", 1) == range(1, 2)


def test_the_copy_becomes_the_source_again_and_keeps_what_is_compiled(tmp_path):
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "__pycache__").mkdir(parents=True)
    (source / "a.py").write_text("a = 1")
    (source / "__pycache__" / "a.py311.nbi").write_text("compiled")
    mirror(source, copy)
    (copy / "a.py").write_text("a = 2")
    (copy / "b.py").write_text("b = 1")
    (copy / "__pycache__" / "c.py311.nbi").write_text("compiled there")
    mirror(source, copy)
    assert (copy / "a.py").read_text() == "a = 1"
    assert (copy / "a.py").stat().st_mtime_ns == (source / "a.py").stat().st_mtime_ns
    assert not (copy / "b.py").exists()
    assert {path.name for path in (copy / "__pycache__").iterdir()} == {"a.py311.nbi", "c.py311.nbi"}


def test_every_survivor_of_the_committed_results_is_explained():
    rows = read(ROOT / "results" / "mutants.csv")
    survivors = {row["key"] for row in rows if row["outcome"] not in KILLED}
    assert survivors <= explained()


def test_the_table_counts_by_module_and_package():
    outcomes = {
        "algorithms/cpo.py": ["killed", "timeout", "survived"],
        "memory/balance.py": ["untested"],
        "memory/offline.py": ["killed"],
    }
    rows = [{"module": module, "outcome": outcome} for module, found in outcomes.items() for outcome in found]
    assert table(rows).splitlines()[2:] == [
        "| algorithms/cpo.py | 3 | 2 | 1 | 0 |",
        "| memory/balance.py | 1 | 0 | 0 | 1 |",
        "| memory/offline.py | 1 | 1 | 0 | 0 |",
        "| memory/ | 2 | 1 | 0 | 1 |",
        "| algorithms/ | 3 | 2 | 1 | 0 |",
        "| all | 5 | 3 | 1 | 1 |",
    ]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_of_fifty_faults_nine_in_ten_are_noticed_and_the_others_are_known(tmp_path):
    results = tmp_path / "mutants.csv"
    command = [sys.executable, "-m", "tests.mutation", "--sample", "50", "--results", str(results)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=7200)
    with results.open(newline="") as file:
        rows = list(csv.DictReader(file))
    left = {row["key"] for row in rows if row["outcome"] not in KILLED}
    assert len(rows) == 50
    assert len(left) <= 5
    assert left <= explained()
