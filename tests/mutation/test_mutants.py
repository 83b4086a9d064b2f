"""The faults of mutation testing are what they say, and a fixed sample of them is noticed."""

import ast
import csv
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.__main__ import KILLED, read, table
from tests.mutation.line_tests import ROOT, choose_tests, statement_lines
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
    show(x)
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
    ("swapped arguments", "x, y", "y, x"), ("arithmetic", "*", "/"),
    ("removed term", "min(x, y) * 3", "(min(x, y))"), ("removed term", "min(x, y) * 3", "(3)"),
    ("constant", "3", "4"), ("removed statement", "out[0] = total", "pass"),
    ("removed statement", "show(x)", "pass"), ("return", "total", "None"),
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


def test_a_sample_is_spread_over_packages_and_fixed_by_its_seed():
    mutants = [
        m
        for name in ("memory/balance.py", "algorithms/cpo.py", "algorithms/critics.py")
        for m in mutants_of(name, SOURCE)
    ]
    chosen = sample(mutants, 20, seed=3)
    assert sum(m.module.startswith("memory/") for m in chosen) == 10
    assert sample(mutants[::-1], 20, seed=3) == chosen
    assert sample(mutants, 10, seed=3) == chosen[:10]
    assert sample(mutants, 20, seed=4) != chosen


def test_tests_are_chosen_by_line_the_quickest_first():
    lines = {"m.py": {"3": ["t.py::a", "t.py::b"], "5": ["u.py"], "9": ["t.py::c"]}}
    known = {"lines": lines, "seconds": {"t.py::a": 4.0, "t.py::b": 1.0, "t.py::c": 2.0, "u.py::d": 3.0}}
    assert choose_tests("m.py", range(3, 4), known, 10.0) == (["t.py::b", "t.py::a"], 5.0)
    assert choose_tests("m.py", range(3, 4), known, 4.5) == (["t.py::b"], 1.0)
    assert choose_tests("m.py", range(5, 6), known, 10.0) == (["u.py::d"], 3.0)  # run by a fixture
    assert choose_tests("m.py", range(7, 8), known, 100.0)[1] == 10.0  # compiled code leaves no trace
    assert choose_tests("n.py", range(3, 4), known, 10.0) == ([], 0.0)
    assert statement_lines(b"if a:\n    f(1,\n      2)\n", 3) == range(2, 4)
    assert statement_lines(b"if a:\n    f(1,\n      2)\n", 1) == range(1, 2)


def explained():
    """The keys of the survivors that survivors.md explains."""
    text = (Path(__file__).parent / "survivors.md").read_text()
    return {line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")}


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
    subprocess.run([*command, "--maps", str(tmp_path / "maps")], cwd=ROOT, check=True, timeout=7200)
    with results.open(newline="") as file:
        rows = list(csv.DictReader(file))
    left = {row["key"] for row in rows if row["outcome"] not in KILLED}
    assert len(rows) == 50
    assert len(left) <= 5
    assert left <= explained()
