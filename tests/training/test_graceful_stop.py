"""What stops a run, and what it leaves: an exit code, one sentence, whole metrics and a checkpoint to go on from."""

import os
import resource
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from rich.console import Console

from flashbulb import envs as cmdp
from flashbulb.algorithms.registry import configure
from flashbulb.errors import Interrupted, RunError
from flashbulb.storage.checkpoint import Checkpoints, load_arrays
from flashbulb.storage.csv_log import CsvLog, read_csv
from flashbulb.training.callbacks import Callback
from flashbulb.training.graceful_stop import graceful_stop
from flashbulb.training.loop import resume, train
from tests.training.killing import TINY, assert_identical, command, rows

WALK = "tests.envs.gym_examples:make_walk"
ITERATIONS = 60
STEPS = 100 * ITERATIONS
OPTIONS = [
    *("--num-envs", "2", "--steps-per-iteration", "100", "--checkpoint-every", "7", "--vectorise", "serial"),
    *("--policy.hidden", "4", "--critic.hidden", "4", "--critic.passes", "1", "--cost-limit", "1"),
]


def cli_run(directory, steps, env=WALK):
    place = ["--runs-dir", str(directory.parent), "--name", directory.name]
    return ["train", "cpo", env, *place, "--steps", str(steps), *OPTIONS]


def wait_for_rows(directory, count):
    deadline = time.monotonic() + 120
    while rows(directory) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    directory = tmp_path_factory.mktemp("untouched") / "run"
    started = command(cli_run(directory, STEPS), directory.parent / "output")
    started.join(120)
    assert started.exitcode == 0
    return directory


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_run_with_a_checkpoint_and_says_how_to_go_on(number, code, untouched, tmp_path):
    run, output = tmp_path / "run", tmp_path / "output"
    started = command(cli_run(run, STEPS), output)
    wait_for_rows(run, 9)
    os.kill(started.pid, number)
    started.join(60)
    assert started.exitcode == code
    done = rows(run)
    assert 9 <= done < ITERATIONS
    assert Checkpoints(run / "checkpoints").iterations()[-1] == done
    last = output.read_text().strip().splitlines()[-1]
    assert last == f"flashbulb: stopped after {done} iterations; go on with: flashbulb resume {run} --env {WALK}"
    resume(run, Console(quiet=True), trusted_env=WALK)
    assert_identical(untouched, run, ITERATIONS)


@pytest.fixture
def listening():
    """Python's own handler of Ctrl-C: a shell that starts us in the background has it ignored."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, inherited)


@pytest.mark.usefixtures("listening")
class SignalIn(Callback):
    """Sends this process a signal at the end of an iteration."""

    def __init__(self, iteration):
        self.iteration = iteration

    def on_iteration_end(self, run, metrics):
        if run.iteration == self.iteration:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_stops_a_run_that_is_not_finished_and_no_other(tmp_path):
    """After the last iteration there is nothing to go on with."""
    small = {"num_envs": 2, "steps_per_iteration": 100, "policy": {"hidden": (4,)}, "critic": {"hidden": (4,)}}
    runs = {name: configure("ppo", "HazardField-v0", runs_dir=tmp_path, name=name, steps=300, **small) for name in "ab"}
    with pytest.raises(Interrupted, match="stopped after 2 iterations"):
        train(runs["a"], Console(quiet=True), callbacks=[SignalIn(2)])
    assert len(train(runs["b"], Console(quiet=True), callbacks=[SignalIn(3)]).metrics["cost"]) == 3


@pytest.fixture
def usual_interrupt():
    """Ctrl-C as a terminal has it: tests that a shell runs in the background inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_interrupt")
def test_the_second_signal_stops_at_once_and_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with graceful_stop() as wish:
        assert wish.signal is None
        os.kill(os.getpid(), signal.SIGINT)
        assert wish.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_other_threads_leave_signals_alone():
    handlers = []

    def look():
        with graceful_stop():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_a_full_disk_stops_the_run_and_making_space_lets_it_go_on(untouched, tmp_path):
    """No file may grow beyond 30 kB, which the metrics reach after some dozens of iterations."""
    run, output = tmp_path / "run", tmp_path / "output"
    started = command(cli_run(run, STEPS), output, file_size=30_000)
    started.join(120)
    assert started.exitcode == 1
    last = output.read_text().strip().splitlines()[-1]
    assert last.startswith(f"flashbulb: {run} stopped in iteration ")
    assert "no space left" in last
    assert "Traceback" not in output.read_text()
    whole = read_csv(run / "metrics.csv")
    assert len(whole["cost"]) > 14
    load_arrays(max((run / "checkpoints").glob("*.safetensors")))
    resume(run, Console(quiet=True), trusted_env=WALK)
    assert_identical(untouched, run, ITERATIONS)


def test_a_row_that_does_not_fit_leaves_none_of_itself(tmp_path):
    log = CsvLog(tmp_path / "metrics.csv")
    log.write([{"iteration": 0, "cost": 0.5}])
    before = log.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 3, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            log.write([{"iteration": 1, "cost": 0.25}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.path.read_bytes() == before
    log.write([{"iteration": 1, "cost": 0.25}])
    assert read_csv(log.path)["cost"].tolist() == [0.5, 0.25]


def test_a_deleted_directory_stops_the_run(tmp_path):
    run, output = tmp_path / "run", tmp_path / "output"
    started = command(cli_run(run, 1_000_000), output)
    wait_for_rows(run, 3)
    trash = run.rename(tmp_path / "trash")  # at once; file by file, a write could meet half a directory
    shutil.rmtree(trash)
    started.join(60)
    assert started.exitcode == 1
    last = output.read_text().strip().splitlines()[-1]
    assert last.startswith(f"flashbulb: {run} stopped in iteration ")
    assert last.endswith(": its directory is gone.")
    assert "Traceback" not in output.read_text()
    assert not run.exists()


class Spoiled:
    """A batch that answers with one wrong number from some step on."""

    def __init__(self, what, after, value):
        self.inner, self.what, self.after, self.value = cmdp.make(WALK, 2, 0, 1, "serial"), what, after, value

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, actions):
        obs, reward, cost, *rest = self.inner.step(actions)
        self.after -= 1
        if self.after < 0:
            {"observations": obs, "rewards": reward, "costs": cost}[self.what].flat[0] = self.value
        return obs, reward, cost, *rest


@pytest.mark.parametrize("what", ["observations", "rewards", "costs"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_from_the_environment_stops_the_run(what, value, tmp_path):
    config = configure("cpo", WALK, runs_dir=tmp_path, name="run", **TINY)
    with pytest.raises(RunError, match=f"run stopped in iteration 3: .*make_walk returned {what} that are not finite"):
        train(config, Console(quiet=True), Spoiled(what, 170, value))
    assert len(read_csv(tmp_path / "run/metrics.csv")["cost"]) == 3
    assert load_arrays(tmp_path / "run/checkpoints/000002.safetensors")["totals/iterations"] == 2


def test_an_update_that_leaves_the_numbers_stops_the_run(tmp_path):
    config = configure("cpo", WALK, runs_dir=tmp_path, name="run", **TINY | {"critic": {"learning_rate": 1e37}})
    with pytest.raises(RunError, match=r"run stopped in iteration \d+: the update made parameters that are not finite"):
        train(config, Console(quiet=True))
    # Where it happens before the first checkpoint the directory is removed, so that its name is free.
    for path in (tmp_path / "run").rglob("*.safetensors"):
        assert all(np.isfinite(array).all() for name, array in load_arrays(path).items() if name.startswith("policy"))


def test_on_the_command_line_it_is_one_sentence_and_exit_code_1(tmp_path):
    run, output = tmp_path / "run", tmp_path / "output"
    started = command(cli_run(run, 1000, "tests.envs.gym_examples:broken_nan_reward"), output)
    started.join(120)
    assert started.exitcode == 1
    assert "Traceback" not in output.read_text()
    assert "rewards that are not finite" in output.read_text().splitlines()[-1]


def test_a_signal_before_the_loop_is_not_lost():
    """The command line asks first, before JAX is imported; the loop then sees the same wish."""
    with graceful_stop() as early:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        with graceful_stop() as late:
            assert late is early
        assert early.code == 143
    with graceful_stop() as later:
        assert later.signal is None
