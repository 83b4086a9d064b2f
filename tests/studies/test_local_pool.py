"""Studies on this machine: real processes, one that fails, one that is killed, and a person who stops it all."""

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
from flashbulb.studies.local_pool import Cores
from flashbulb.studies.run_process import command, ending
from flashbulb.studies.runner import Patience, execute
from tests.training.killing import assert_identical, rows
from tests.training.killing import command as in_a_process
from tests.studies.small_study import BROKEN, ITERATIONS, reference, small_plan


def kill_once(plan, job, workers, after):
    """SIGKILL the job's process once it has written some rows."""

    def watch():
        while rows(plan.run(job)) < after:
            time.sleep(0.001)
        (worker,) = (worker for worker in workers.slots.values() if worker.job == job)
        worker.process.kill()

    threading.Thread(target=watch, daemon=True).start()


def test_a_killed_run_is_resumed_and_a_failed_one_is_reported(tmp_path):
    plan = small_plan(tmp_path / "study", ("cpo", BROKEN), ("mice-cpo", "HazardField-v0"))
    broken, killed = plan.jobs
    workers, output = Cores(plan, 2), io.StringIO()
    kill_once(plan, killed, workers, after=5)
    lines = execute(plan, workers, Console(file=output, width=200), "")
    assert [line.state for line in lines] == ["failed", "finished"]
    assert f"{killed.name}: was killed by signal 9 (SIGKILL); will be resumed" in output.getvalue()
    assert plan.log(killed).read_text().count("flashbulb resume ") == 1
    assert lines[0].reason == plan.failure(broken).read_text().strip()
    assert "stopped in iteration 0: " in lines[0].reason
    assert "rewards that are not finite" in lines[0].reason
    assert_identical(reference(tmp_path, killed), plan.run(killed), ITERATIONS)

    class Nobody:
        """Of the two runs only one is asked for again."""

        count, started = 1, []

        def free(self):
            return True

        def start(self, job):
            self.started.append(job)

        def ended(self):
            return [(job, ending(1, plan.log(job))) for job in self.started]

        def close(self):
            pass

    execute(plan, Nobody(), Console(quiet=True), "")
    assert Nobody.started == [broken]


ASKED = ["study", "versus-base", "--scale", "smoke", "--tasks", "HazardField-v0", "--algorithms", "cpo", "--seeds", "0"]


def test_the_command_stopped_and_asked_for_again(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [*ASKED, "--steps", "40000", "--directory", str(tmp_path / "studies")]
    study = tmp_path / "studies/versus-base-smoke"
    inside, output = study / "runs/cpo_HazardField-v0_seed0", tmp_path / "output"
    started = in_a_process(asked, output)
    deadline = time.monotonic() + 120
    while rows(inside) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert run([*asked, "--status"]) == 0
    assert "1 running; 0:0" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"^directory: .*versus-base-smoke is in use by another study; wait for it"):
        run(asked)
    os.kill(started.pid, signal.SIGTERM)
    started.join(60)
    assert started.exitcode == 143
    last = output.read_text().strip().splitlines()[-1]
    assert last == f"flashbulb: stopped with 0 of 1 runs finished; go on with: flashbulb {' '.join(asked)}"
    done = rows(inside)
    assert 3 <= done < 20
    assert max(Checkpoints(inside / "checkpoints").iterations()) == done
    capsys.readouterr()

    assert run(asked) == 0
    assert rows(inside) == 20
    assert "flashbulb resume" in (study / "logs/cpo_HazardField-v0_seed0.log").read_text()
    for name in ("table.md", "table.csv", "measures.csv", "figure.png", "figure-bars.png"):
        assert (study / name).stat().st_size > 0
    assert "cpo_HazardField-v0_seed0: finished, return " in capsys.readouterr().out
    assert run(["study", "versus-base", "--scale", "smoke", "--directory", str(tmp_path / "studies"), "--status"]) == 0
    assert capsys.readouterr().out.strip().splitlines()[-1] == "1 finished"


def test_patience_with_what_is_killed_again_and_again(tmp_path):
    """Three times at the same place is enough; a new checkpoint is a new beginning."""
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"))
    (job,), patience = plan.jobs, Patience(plan)
    assert [patience.lasts(job) for _ in range(3)] == [True, True, False]
    checkpoints = plan.run(job) / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "000002.safetensors").touch()
    assert [patience.lasts(job) for _ in range(3)] == [True, True, False]


def test_a_process_does_not_outlive_the_one_that_started_it(tmp_path):
    """Its standard input closes, as it does when its starter is gone, and it stops with a checkpoint."""
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"), steps=10_000_000)
    (job,) = plan.jobs
    workers = Cores(plan, 1)
    workers.start(job)
    deadline = time.monotonic() + 120
    while rows(plan.run(job)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process = workers.slots[0].process
    if hasattr(os, "sched_getaffinity"):
        assert os.sched_getaffinity(process.pid) == {workers.cores[0]}
    process.stdin.close()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert max(Checkpoints(plan.run(job) / "checkpoints").iterations()) == rows(plan.run(job))


def test_what_was_killed_at_birth_is_begun_anew(tmp_path):
    plan = small_plan(tmp_path / "study", ("cpo", "HazardField-v0"))
    (job,) = plan.jobs
    directory = RunDirectory.create(job.config)
    (directory.path / "config.json.tmp").touch()
    assert command(job.config, directory.path)[0] == "train"
    assert not directory.path.exists()
    assert command(job.config, directory.path)[0] == "train"


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


def test_without_a_name_it_lists_them(capsys):
    assert run(["study"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert lines[0].split()[:3] == ["underestimation", "Figure", "2"]
