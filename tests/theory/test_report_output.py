"""The table, the verb, and the room's direction of knowledge."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import flashbulb.theory
from flashbulb.cli import main as cli
from flashbulb.errors import UsageError
from flashbulb.theory import statements as report
from flashbulb.theory.cases import Check

TRUE = Check("Lemma 1", "true", True, 3, 0.5, True)
SLIP = Check("Lemma 1", "a slip", False, 3, -2.0, False)
SURPRISE = Check("Lemma 1", "broken", True, 3, -2.0, False)


def test_table_says_what_was_unexpected(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.print_table([TRUE, SLIP])
    assert not report.print_table([TRUE, SURPRISE])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["where", "statement", "cases", "worst slack", "holds"]
    assert rows[2] == ["Lemma 1", "true", "3", "+5e-01", "yes"]
    assert rows[3][-1] == "no"
    assert rows[-1][-1] == "NO (unexpected)"


@pytest.mark.parametrize("name", ["drawn.png", None])
def test_verb(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "CHECKS", (lambda cases, seed: TRUE,))
    monkeypatch.setattr(report, "draw_bias", lambda path: path.write_text("figure"))
    assert cli.run(["theory", *([str(tmp_path / name)] if name else [])]) == 0
    assert "| true" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ([name] if name else [])
    monkeypatch.setattr(report, "CHECKS", (lambda cases, seed: SURPRISE,))
    assert cli.run(["theory"]) == 1


@pytest.mark.parametrize("arguments", [["a.png", "b.png"], ["--cases"], ["/no/such/directory/a.png"]])
def test_bad_arguments(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="theory: "):
        report.main(arguments)


def test_statements_fit_a_table() -> None:
    """No cell may hold the column's own sign; checked in the source, as running all takes a minute."""
    for path in Path(flashbulb.theory.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("judge", "_judge"):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                assert not any("|" in text for text in texts), texts


def test_theory_knows_only_memory_but_for_the_actual_step() -> None:
    allowed = ("flashbulb.theory", "flashbulb.memory", "flashbulb.config", "flashbulb.normaliser", "flashbulb.errors")
    for path in Path(flashbulb.theory.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flashbulb"):
                known = (*allowed, "flashbulb.algorithms") if path.name == "actual_step.py" else allowed
                assert (node.module or "").startswith(known), (path.name, node.module)
