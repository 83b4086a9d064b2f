"""The table and the command of `flashbulb theory`, and which packages the theory imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import flashbulb.theory
from flashbulb.cli import main as cli
from flashbulb.errors import UsageError
from flashbulb.theory import statements
from flashbulb.theory.cases import StatementCheck

TRUE = StatementCheck("Lemma 1", "true", True, 3, 0.5, True)
ERROR_IN_PAPER = StatementCheck("Lemma 1", "an error of the paper", False, 3, -2.0, False)
UNEXPECTED = StatementCheck("Lemma 1", "broken", True, 3, -2.0, False)


def test_the_table_marks_unexpected_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert statements.print_checks([TRUE, ERROR_IN_PAPER])
    assert not statements.print_checks([TRUE, UNEXPECTED])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["where", "statement", "cases", "worst slack", "holds"]
    assert rows[2] == ["Lemma 1", "true", "3", "+5e-01", "yes"]
    assert rows[3][-1] == "no"
    assert rows[-1][-1] == "NO (unexpected)"


@pytest.mark.parametrize("name", ["drawn.png", None])
def test_command(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(statements, "CHECKS", (lambda cases, seed: TRUE,))
    monkeypatch.setattr(statements, "draw_bias_curves", lambda path: path.write_text("figure"))
    assert cli.run(["theory", *([str(tmp_path / name)] if name else [])]) == 0
    assert "| true" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ([name] if name else [])
    monkeypatch.setattr(statements, "CHECKS", (lambda cases, seed: UNEXPECTED,))
    assert cli.run(["theory"]) == 1


@pytest.mark.parametrize("arguments", [["a.png", "b.png"], ["--cases"], ["/no/such/directory/a.png"]])
def test_bad_arguments(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="theory: "):
        statements.main(arguments)


def test_statements_fit_a_table() -> None:
    """No statement contains the column separator; checked in the source, as running all checks takes a minute."""
    for path in Path(flashbulb.theory.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("check_slacks", "_check_solver"):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                assert not any("|" in text for text in texts), texts


def test_theory_imports_only_memory_except_for_the_actual_step() -> None:
    allowed = ("flashbulb.theory", "flashbulb.memory", "flashbulb.config", "flashbulb.normaliser", "flashbulb.errors")
    for path in Path(flashbulb.theory.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flashbulb"):
                known = (*allowed, "flashbulb.algorithms") if path.name == "actual_step.py" else allowed
                assert (node.module or "").startswith(known), (path.name, node.module)
