"""The progress line fits the terminal and keeps what matters: the iteration and the time left."""

import io
import re

import pytest
from rich.console import Console

from flashbulb.training import progress as progress_module
from flashbulb.training.progress import PlainProgress, TerminalProgress, headline

ROW = {"return": -1234.56, "cost": 123.4, "violation_rate": 1.0, "beta": 5.0, "memory_size": 123_456}


@pytest.mark.parametrize("width", [60, 80, 129, 130, 200])
def test_iteration_and_time_left_are_shown(width):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    with TerminalProgress(console, iterations=500, done=0, limit=25.0) as progress:
        for n in range(3):
            progress.show(ROW | {"iteration": n, "episode_estimated": 1}, 11_408.0)
    last = re.split(r"\r|\n", re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", out.getvalue()).rstrip())[-1]
    assert "3/500" in last
    assert re.search(r"[-0-9]:[-0-9]{2}:[-0-9]{2}", last)
    assert "return ~-1234.56" in last
    assert len(last) <= width
    assert "…" not in last


def test_the_headline_has_the_numbers_of_the_row():
    line = headline(ROW | {"episode_estimated": 0}, 25.0, 11_408.2)
    assert line == "return -1234.56  cost 123.4/25  violated 100%  beta 5.00  memory 123,456  11,408 steps/s"
    without = {"memory_size": 0, "violation_rate": 0.25, "cost_a": 1.0, "cost_b": 2.0, "episode_estimated": 1}
    line = headline(ROW | without, {"a": 3.0, "b": 4.0}, 10.0)
    assert line == "return ~-1234.56  a ~1.0/3  b ~2.0/4  violated 25%  10 steps/s"


def test_plain_lines_come_every_few_seconds_and_tell_the_time_left(monkeypatch):
    """From iteration 2 of 10 on, four seconds each: after two of them, six are left."""
    clock = iter([100.0, *(100.0 + 4 * done for done in range(1, 9))])
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    with PlainProgress(Console(file=out, width=200), 10, 2, 25.0, every=8.0) as progress:
        for n in range(2, 10):
            progress.show(ROW | {"iteration": n, "episode_estimated": 0}, 10.0)
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["3/10", "5/10", "7/10", "9/10", "10/10"]
    assert [line.split("steps/s")[1].strip() for line in lines] == [f"{s} s left" for s in (28, 20, 12, 4, 0)]
