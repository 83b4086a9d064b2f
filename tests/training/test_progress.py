"""The progress line fits the terminal and keeps what matters: the iteration and the time left."""

import io
import re

import pytest
from rich.console import Console

from flashbulb.training.progress import TerminalProgress

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
