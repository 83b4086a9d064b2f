"""The status of a study, read from directories made by hand."""

import math
import subprocess
import sys
import time

import pytest
from rich.console import Console

from flashbulb.storage.run_directory import RunDirectory
from flashbulb.studies.status import (
    LiveTable,
    RunStatus,
    group_table,
    read_status,
    read_study_status,
    status_line,
    status_table,
    time_left,
)
from tests.studies.small_study import small_plan
from tests.training.small_run import made_run

PAIRS = (("cpo", "HazardField-v0"), ("mice-cpo", "HazardField-v0"), ("pid-lag", "HazardField-v0"))


@pytest.fixture
def plan(tmp_path):
    """One run finished, one interrupted, one not started, one failed; four iterations of 300 steps each."""
    sizes = {"num_envs": 3, "steps_per_iteration": 300, "steps": 1_200}
    plan = small_plan(tmp_path / "study", *PAIRS, ("cup", "HazardField-v0"), **sizes)
    for job, done, seconds in zip(plan.jobs, (4, 2), (0.5, 2.0), strict=False):
        made_run(plan.path / "runs", job.name, job.config.algorithm, done=done)
        rows = "".join(f"{n},{seconds},{300 / seconds}\n" for n in range(done))
        (plan.run_path(job) / "timing.csv").write_text("iteration,seconds,steps_per_second\n" + rows)
    plan.failure_path(plan.jobs[3]).write_text("out of memory.\n")
    return plan


def test_states_and_numbers(plan):
    statuses = [read_status(plan, job) for job in plan.jobs]
    assert [status.state for status in statuses] == ["finished", "interrupted", "waiting", "failed"]
    assert [status.done for status in statuses] == [4, 2, 0, 0]
    assert [status.remaining for status in statuses] == [0, 2, 4, 0]
    assert [status.steps_per_second for status in statuses[:2]] == [600, 150]
    assert (statuses[0].returns, statuses[0].cost) == (3.0, 6.0)  # the last values of made_run
    assert statuses[3].reason == "out of memory."
    with RunDirectory(plan.run_path(plan.jobs[1])).locked():
        pass
    assert read_status(plan, plan.jobs[1]).state == "interrupted"


def test_a_run_without_its_last_checkpoint_is_not_finished(plan):
    for checkpoint in (plan.run_path(plan.jobs[0]) / "checkpoints").iterdir():
        checkpoint.unlink()
    assert read_status(plan, plan.jobs[0]).state == "interrupted"


def test_time_left_by_hand(plan):
    """A run not started takes the mean of its task, (0.5 + 2) / 2 seconds an iteration: 2 * 2 + 4 * 1.25."""
    statuses = [read_status(plan, job) for job in plan.jobs]
    assert time_left(statuses, 1) == 9.0
    assert time_left(statuses, 2) == 5.0  # the longest run
    assert status_line(statuses, 2) == "1 finished, 1 interrupted, 1 failed, 1 waiting; 0:00:05 left"
    assert math.isnan(time_left(statuses[2:], 1))
    assert status_line(statuses[2:3], 1) == "1 waiting; time left not known yet"
    assert status_line(statuses[:1], 1) == "1 finished"


LOCK_FILE = "import fcntl, sys, time; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); time.sleep(60)"


def test_a_remote_run_is_running_while_its_driver_lives(plan):
    plan.remote_marker(plan.jobs[1]).touch()
    assert read_study_status(plan)[1].state == "interrupted"
    driver = subprocess.Popen([sys.executable, "-c", LOCK_FILE, str(plan.path / ".lock")])
    try:
        deadline = time.monotonic() + 60
        while not RunDirectory(plan.path).is_locked():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [status.state for status in read_study_status(plan)] == ["finished", "running", "waiting", "failed"]
    finally:
        driver.kill()
        driver.wait()
    assert read_study_status(plan)[1].state == "interrupted"


def text_of(renderable, width=160):
    console = Console(width=width, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def test_table(plan):
    statuses = [read_status(plan, job) for job in plan.jobs]
    first, second, third, *_ = text_of(status_table(statuses, statuses)).splitlines()[1:]
    assert first.split() == ["cpo_HazardField-v0", "finished", "4/4", "1,200", "3.00", "6.00", "600"]
    assert second.split()[-2:] == ["150", "0:00:04"]
    assert third.split()[-6:] == ["0/4", "0", "-", "-", "-", "0:00:05"]


def test_a_small_screen_shows_the_running_runs_first(plan):
    screen = Console(width=100, height=7, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    table = LiveTable(plan, screen, 1)
    table.running.add(plan.jobs[2].name)
    table.statuses[plan.jobs[2].name] = RunStatus(plan.jobs[2], "running", 1, 300, 1.5, 2.5, 0.1)
    shown = text_of(table._table())
    assert "pid-lag_HazardField-v0" in shown
    assert "cpo_HazardField-v0  finished" not in shown
    assert "(1 more runs are not shown)" in shown


def test_groups_have_a_row_for_each_algorithm_and_task(tmp_path):
    """Counts, the share of iterations that are done, and means over the runs that have begun: (3 + 2) / 2."""
    sizes = {"num_envs": 3, "steps_per_iteration": 300, "steps": 1_200}
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"), ("cup", "HazardField-v0"), **sizes)
    cpo, cup = plan.jobs
    jobs = [cpo, cpo._replace(name="cpo-1"), cpo._replace(name="cpo-2"), cup]
    labels = {job.name: job.config.algorithm for job in jobs}
    statuses = [
        RunStatus(jobs[0], "finished", 4, 1_200, 3.0, 6.0, 1.0),
        RunStatus(jobs[1], "interrupted", 2, 600, 2.0, 4.0, 1.0),
        RunStatus(jobs[2], "waiting"),
        RunStatus(jobs[3], "waiting"),
    ]
    _, first, second = text_of(group_table(statuses, labels)).splitlines()
    states = "1 finished, 1 interrupted, 1 waiting"
    assert " ".join(first.split()) == f"cpo HazardField-v0 {states} 50 % 2.50 5.00 0:00:06"
    assert " ".join(second.split()) == "cup HazardField-v0 1 waiting 0 % - - 0:00:04"


def test_a_damaged_run_does_not_hide_the_others(plan):
    (plan.run_path(plan.jobs[0]) / "config.json").write_text("{")
    statuses = read_study_status(plan)
    assert [status.state for status in statuses] == ["failed", "interrupted", "waiting", "failed"]
    assert "config.json cannot be read" in statuses[0].reason
