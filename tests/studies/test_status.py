"""What a study's table says, against directories made by hand."""

import math
import subprocess
import sys
import time

import pytest
from rich.console import Console

from flashbulb.storage.run_directory import RunDirectory
from flashbulb.studies.live_table import Board
from flashbulb.studies.status import Line, look, look_at_all, summary, table, time_left
from tests.training.small_run import made_run
from tests.studies.small_study import small_plan

PAIRS = (("cpo", "HazardField-v0"), ("mice-cpo", "HazardField-v0"), ("pid-lag", "HazardField-v0"))


@pytest.fixture
def plan(tmp_path):
    """One run finished, one stopped in the middle, one not begun; four iterations of 300 steps each."""
    sizes = {"num_envs": 3, "steps_per_iteration": 300, "steps": 1_200}
    plan = small_plan(tmp_path / "study", *PAIRS, ("cup", "HazardField-v0"), **sizes)
    for job, done, seconds in zip(plan.jobs, (4, 2), (0.5, 2.0), strict=False):
        made_run(plan.path / "runs", job.name, job.config.algorithm, done=done)
        rows = "".join(f"{n},{seconds},{300 / seconds}\n" for n in range(done))
        (plan.run(job) / "timing.csv").write_text("iteration,seconds,steps_per_second\n" + rows)
    plan.failure(plan.jobs[3]).write_text("there was no luck.\n")
    return plan


def test_states_and_numbers(plan):
    lines = [look(plan, job) for job in plan.jobs]
    assert [line.state for line in lines] == ["finished", "interrupted", "waiting", "failed"]
    assert [line.done for line in lines] == [4, 2, 0, 0]
    assert [line.ahead for line in lines] == [0, 2, 4, 4]
    assert [line.rate for line in lines[:2]] == [600, 150]
    assert (lines[0].returns, lines[0].cost) == (3.0, 6.0)  # made_run's lines at their end
    assert lines[3].reason == "there was no luck."
    with RunDirectory(plan.run(plan.jobs[1])).locked():
        pass
    assert look(plan, plan.jobs[1]).state == "interrupted"


def test_a_run_whose_last_state_was_not_saved_is_not_finished(plan):
    for checkpoint in (plan.run(plan.jobs[0]) / "checkpoints").iterdir():
        checkpoint.unlink()
    assert look(plan, plan.jobs[0]).state == "interrupted"


def test_time_left_by_hand(plan):
    """What has not begun is like its task's mean, (0.5 + 2) / 2 seconds an iteration: 2 * 2 + 4 * 1.25 + 4 * 1.25."""
    lines = [look(plan, job) for job in plan.jobs]
    assert time_left(lines, 1) == 14.0
    assert time_left(lines, 2) == 7.0
    assert time_left(lines, 8) == 5.0  # of the longest alone
    assert summary(lines, 2) == "1 finished, 1 interrupted, 1 failed, 1 waiting; 0:00:07 left"
    assert math.isnan(time_left(lines[2:], 1))
    assert summary(lines[2:3], 1) == "1 waiting; time left not known yet"
    assert summary(lines[:1], 1) == "1 finished"


HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'ab'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(60)"


def test_a_run_on_a_cluster_runs_as_long_as_its_driver_lives(plan):
    plan.mark(plan.jobs[1]).touch()
    assert look_at_all(plan)[1].state == "interrupted"
    driver = subprocess.Popen([sys.executable, "-c", HOLD, str(plan.path / ".lock")])
    try:
        while not RunDirectory(plan.path).is_locked():
            time.sleep(0.01)
        assert [line.state for line in look_at_all(plan)] == ["finished", "running", "waiting", "failed"]
    finally:
        driver.kill()
        driver.wait()
    assert look_at_all(plan)[1].state == "interrupted"


def text_of(renderable, width=160):
    console = Console(width=width, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def test_table(plan):
    lines = [look(plan, job) for job in plan.jobs]
    first, second, third, *_ = text_of(table(lines, lines)).splitlines()[1:]
    assert first.split() == ["cpo_HazardField-v0", "finished", "4/4", "1,200", "3.00", "6.00", "600"]
    assert second.split()[-2:] == ["150", "0:00:04"]
    assert third.split()[-6:] == ["0/4", "0", "-", "-", "-", "0:00:05"]


def test_on_a_small_screen_what_runs_is_shown(plan):
    screen = Console(width=100, height=7, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    board = Board(plan, screen, 1)
    board.running.add(plan.jobs[2].name)
    board.lines[plan.jobs[2].name] = Line(plan.jobs[2], "running", 1, 300, 1.5, 2.5, 0.1)
    shown = text_of(board._table())
    assert "pid-lag_HazardField-v0" in shown
    assert "cpo_HazardField-v0  finished" not in shown
    assert "(1 more runs are not shown)" in shown
