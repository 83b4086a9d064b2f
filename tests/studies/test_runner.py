"""Studies on this machine with real processes: a failed run, a killed run, an interrupted study."""

import csv
import io
import os
import signal
import threading
import time

import pytest
from rich.console import Console

from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.studies.plan import StudyRequest, make_plan
from flashbulb.studies.run_process import LocalPool, run_command, run_exit
from flashbulb.studies.runner import RetryPolicy, run_study, write_results
from tests.studies.small_study import BROKEN, ITERATIONS, reference, small_plan
from tests.studies.written_run import written_run
from tests.training.killing import assert_identical, rows
from tests.training.killing import command as in_a_process


def kill_once(plan, job, pool, after):
    """SIGKILL the job's process once it has written some rows."""

    def watch():
        deadline = time.monotonic() + 120
        while rows(plan.run_path(job)) < after and time.monotonic() < deadline:
            time.sleep(0.001)
        (worker,) = (worker for worker in pool.slots.values() if worker.job == job)
        worker.process.kill()

    threading.Thread(target=watch, daemon=True).start()


@pytest.mark.slow  # between changes an interrupted study is enough
def test_a_killed_run_is_resumed_and_a_failed_one_is_reported(tmp_path):
    plan = small_plan(tmp_path / "study", ("cpo", BROKEN), ("mice-cpo", "HazardField-v0"))
    broken, killed = plan.jobs
    pool, output = LocalPool(plan, 2), io.StringIO()
    kill_once(plan, killed, pool, after=5)
    statuses = run_study(plan, pool, Console(file=output, width=200), "")
    assert [status.state for status in statuses] == ["failed", "finished"]
    assert f"{killed.name}: was killed by signal 9 (SIGKILL); will be resumed" in output.getvalue()
    assert plan.log_path(killed).read_text().count("flashbulb resume ") == 1
    assert statuses[0].reason == plan.failure_path(broken).read_text().strip()
    assert "stopped in iteration 0: " in statuses[0].reason
    assert "rewards that are not finite" in statuses[0].reason
    assert_identical(reference(tmp_path, killed), plan.run_path(killed), ITERATIONS)

    class RecordingPool:
        """Records which jobs are started; all of them fail."""

        size, started = 1, []

        def has_free_slot(self):
            return True

        def start(self, job):
            self.started.append(job)

        def poll(self):
            return [(job, run_exit(1, plan.log_path(job))) for job in self.started]

        def close(self):
            pass

    run_study(plan, RecordingPool(), Console(quiet=True), "")
    assert RecordingPool.started == [broken]


STUDY = ["study", "versus-base", "--scale", "smoke", "--tasks", "HazardField-v0", "--algorithms", "cpo", "--seeds", "0"]


def test_the_command_is_interrupted_and_resumed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*STUDY, "--steps", "40000", "--directory", str(tmp_path / "studies")]
    study = tmp_path / "studies/versus-base-smoke"
    inside, output = study / "runs/cpo_HazardField-v0_seed0", tmp_path / "output"
    started = in_a_process(arguments, output)
    deadline = time.monotonic() + 120
    while rows(inside) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert run([*arguments, "--status"]) == 0
    assert "1 running; 0:0" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"^directory: .*versus-base-smoke is in use by another study; wait for it"):
        run(arguments)
    os.kill(started.pid, signal.SIGTERM)
    started.join(60)
    assert started.exitcode == 143
    last = output.read_text().strip().splitlines()[-1]
    assert last == f"flashbulb: stopped with 0 of 1 runs finished; go on with: flashbulb {' '.join(arguments)}"
    done = rows(inside)
    assert 3 <= done < 20
    assert max(Checkpoints(inside / "checkpoints").iterations()) == done
    capsys.readouterr()

    assert run(arguments) == 0
    assert rows(inside) == 20
    assert "flashbulb resume" in (study / "logs/cpo_HazardField-v0_seed0.log").read_text()
    for name in ("table.md", "table.csv", "measures.csv", "figure.png", "figure-bars.png"):
        assert (study / name).stat().st_size > 0
    assert "cpo_HazardField-v0_seed0: finished, return " in capsys.readouterr().out
    assert run(["study", "versus-base", "--scale", "smoke", "--directory", str(tmp_path / "studies"), "--status"]) == 0
    assert capsys.readouterr().out.strip().splitlines()[-1] == "1 finished"


def test_a_job_killed_three_times_at_one_checkpoint_is_not_retried(tmp_path):
    """A job may be killed twice at the same checkpoint and fails the third time; a new checkpoint resets the count."""
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"))
    (job,), retries = plan.jobs, RetryPolicy(plan)
    assert [retries.may_retry(job) for _ in range(3)] == [True, True, False]
    checkpoints = plan.run_path(job) / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "000002.safetensors").touch()
    assert [retries.may_retry(job) for _ in range(3)] == [True, True, False]


def test_a_run_stops_when_its_parent_process_ends(tmp_path):
    """When its standard input closes, as on the end of its parent, it writes a checkpoint and stops."""
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"), steps=10_000_000)
    (job,) = plan.jobs
    pool = LocalPool(plan, 1)
    pool.start(job)
    deadline = time.monotonic() + 120
    while rows(plan.run_path(job)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process = pool.slots[0].process
    process.stdin.close()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert max(Checkpoints(plan.run_path(job) / "checkpoints").iterations()) == rows(plan.run_path(job))


COLUMNS = {"return": [1.0], "cost": [2.0], "violation_rate": [0.0], "cost_rate": [0.1]}


def test_a_figure_without_data_and_a_damaged_run_are_named_and_left_out(tmp_path, capsys):
    plan = make_plan("bias", "smoke", tmp_path, StudyRequest(("HazardField-v0",), ("cpo",), (0, 1)))
    kept, damaged = (written_run(plan.path / "runs", job.name, COLUMNS) for job in plan.jobs)
    (damaged / "config.json").write_text("{")
    assert write_results(plan) == [plan.path / "table.md"]
    said = capsys.readouterr().err
    assert f"{damaged} is left out: " in said
    assert "figure.png is left out: no run has measured its critic's bias" in said
    table = csv.DictReader((plan.path / "measures.csv").read_text().splitlines())
    assert [row["run"] for row in table] == [kept.name]


def test_what_was_killed_at_birth_is_begun_anew(tmp_path):
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"))
    (job,) = plan.jobs
    directory = RunDirectory.create(job.config)
    (directory.path / "config.json.tmp").touch()
    assert run_command(job.config, directory.path)[0] == "train"
    assert not directory.path.exists()
    assert run_command(job.config, directory.path)[0] == "train"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nonsense"], "study: unknown study 'nonsense'"),
        (["bias", "--scale", "huge"], "invalid choice 'huge' for argument '--scale'"),
        (["bias", "--processes", "0"], "processes: 0 is not allowed"),
        (["bias", "--steps", "0"], "steps: 0 is not allowed"),
        (["bias", "--seeds", "-3"], "seeds: -3 is not allowed"),
        (["bias", "--tasks", "Nowhere-v0"], "env: unknown task 'Nowhere-v0'"),
        (["bias", "--algorithms", "cpp"], "algorithm: unknown algorithm 'cpp'"),
        (["bias", "--ray-address", "auto"], "ray_address: it is for --on ray only"),
        (["--status"], "name: missing"),
    ],
)
def test_bad_input_is_one_sentence(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        run(["study", *options])
    assert str(error.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_without_a_name_the_command_lists_the_studies(capsys):
    assert run(["study"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13
    assert lines[0].split()[:3] == ["underestimation", "Figure", "2"]
