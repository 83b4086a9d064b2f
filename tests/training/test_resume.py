"""Killed at any moment and resumed, a run ends bit for bit as if nothing had happened."""

import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save
from tensorboardX.proto.event_pb2 import SessionLog

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.errors import RunError, UsageError
from flashbulb.storage.checkpoint import Checkpoints, Damaged, best_feasible, load_arrays
from flashbulb.storage.csv_log import CsvLog, read_csv
from flashbulb.storage.run_directory import load_config
from flashbulb.training import loop
from tests.training.killing import TINY, assert_identical, kill_at_random, run_to_end
from tests.training.test_loop import tfrecords

ITERATIONS = TINY["steps"] // TINY["steps_per_iteration"]
SHORT = TINY | {"steps": 600}
FOREIGN = "tests.envs.gym_examples:make_walk"
PAIRS = [
    ("mice-cpo", "SafetyHopperVelocity-v1"),
    ("mice-pid", "SafetyPointGoal1-v0"),
    ("simmer-pid", FOREIGN),
]


KILLS = int(os.environ.get("FLASHBULB_KILLS", "1000"))  # of the slow tests together
ALGORITHMS = ("mice-cpo", "mice-pid", "simmer-pid")
TASKS = ("SafetySwimmerVelocity-v1", "SafetyPointGoal1-v0", FOREIGN)


def kill_and_compare(algorithm, env, kills, seed, tmp_path):
    """Runs that are killed at most ten times each, all compared with one that is left alone."""
    untouched, rng = tmp_path / "untouched", np.random.default_rng(seed)
    run_to_end(untouched, algorithm, env)
    for begin in range(0, kills, 10):
        killed, count = tmp_path / f"killed{begin}", min(10, kills - begin)
        in_time = sum(kill_at_random(killed, algorithm, env, rng) for _ in range(count))
        assert in_time == count
        run_to_end(killed, algorithm, env)
        assert_identical(untouched, killed, ITERATIONS)
        shutil.rmtree(killed)


# One of the three is enough between changes; the others have their turn in `make test-all`.
@pytest.mark.parametrize(
    ("algorithm", "env"), [PAIRS[0], *(pytest.param(*p, marks=pytest.mark.slow) for p in PAIRS[1:])]
)
def test_killed_at_random_moments_it_ends_as_if_it_had_not_been(algorithm, env, tmp_path):
    kill_and_compare(algorithm, env, kills=3, seed=0, tmp_path=tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("env", TASKS)
def test_every_algorithm_on_every_kind_of_task_killed_many_times(algorithm, env, tmp_path):
    kill_and_compare(algorithm, env, -(-KILLS // (len(ALGORITHMS) * len(TASKS))), seed=1, tmp_path=tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of three checkpoints: after 2, 4 and 6 iterations."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    run_to_end(directory, "mice-cpo", FOREIGN, SHORT)
    return directory


def resume(run, console=None):
    """With the user's word for the environment."""
    return loop.resume(run, console, trusted_env=FOREIGN)


def copy(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def newest(directory):
    return max((directory / "checkpoints").glob("*.safetensors"))


def empty(path):
    path.write_bytes(b"")


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def half_a_header(path):
    path.write_bytes(path.read_bytes()[:5])


def one_byte_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def one_bit_flipped(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def two_names_swapped(path):
    """A file that safetensors takes for whole."""
    data = path.read_bytes()
    mean, variance = b'"normaliser/mean":', b'"normaliser/variance":'
    assert data.count(mean) == data.count(variance) == 1
    path.write_bytes(data.replace(mean, b"@").replace(variance, mean).replace(b"@", variance))


def no_checksum(path):
    path.write_bytes(save(load_arrays(path)))


def pickled(path):
    path.write_bytes(pickle.dumps({"learner": 1}))


def missing(path):
    path.unlink()


BROKEN = [empty, half, half_a_header, one_byte_short, one_bit_flipped, two_names_swapped, no_checksum, pickled, missing]


@pytest.mark.parametrize("damage", BROKEN)
def test_a_damaged_checkpoint_is_never_used(damage, finished, tmp_path):
    path = newest(copy(finished, tmp_path))
    load_arrays(path)
    damage(path)
    with pytest.raises(Damaged, match=path.name) as caught:
        load_arrays(path)
    assert "\n" not in str(caught.value)


def test_the_one_before_is_used_and_the_user_is_told(finished, tmp_path):
    run, console = copy(finished, tmp_path), Console(record=True, width=300, file=io.StringIO())
    half(newest(run))
    one_bit_flipped(run / "checkpoints/000004.safetensors")
    resume(run, console)
    told = console.export_text()
    assert "000006.safetensors is damaged" in told
    assert "000004.safetensors is damaged (its checksum is wrong); the one before is used." in told
    assert "after 2 iterations" in told
    assert_identical(finished, run, 6)
    assert (run / "checkpoints/000004.damaged").exists()


@pytest.mark.parametrize("backend", ["compiled", pytest.param("optax", marks=pytest.mark.slow)])
def test_both_steps_of_cup_go_on_with_their_own_moments(backend, tmp_path):
    untouched, settings = tmp_path / "run", SHORT | {"proximal": {"passes": 3, "minibatch": 16, "backend": backend}}
    run_to_end(untouched, "cup", FOREIGN, settings)
    run = copy(untouched, tmp_path)
    missing(newest(run))
    resume(run, Console(quiet=True))
    assert_identical(untouched, run, 6)


CUP_RUN = """
import sys
from pathlib import Path
from tests.training.killing import train_or_resume
from tests.training.test_resume import FOREIGN, SHORT
settings = SHORT | {"proximal": {"passes": 3, "minibatch": 16}}
train_or_resume(Path(sys.argv[1]), "cup", FOREIGN, settings)
"""


@pytest.mark.slow
def test_what_was_just_compiled_computes_the_same_as_what_was_cached(tmp_path):
    """Actor and critics share compiled functions; each must come with its own copy of them, in whatever order."""
    for name in ("compiled", "cached"):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
        subprocess.run([sys.executable, "-c", CUP_RUN, tmp_path / name], env=environment, check=True, timeout=250)
    assert list((tmp_path / "numba").rglob("actor_fit.visit*.nbc"))
    assert_identical(tmp_path / "compiled", tmp_path / "cached", 6)


def test_killed_before_its_first_checkpoint_it_begins_at_the_beginning(finished, tmp_path):
    run = copy(finished, tmp_path)
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    for name in ("metrics.csv", "timing.csv"):
        path = run / name
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    (run / "spaces.json").unlink()  # killed before it was written
    resume(run, Console(quiet=True))
    assert_identical(finished, run, 6)
    assert (run / "spaces.json").read_bytes() == (finished / "spaces.json").read_bytes()
    assert (run / "episodes.csv.old").read_bytes() == (finished / "episodes.csv").read_bytes()


def files(run):
    """Contents of all files but the lock."""
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}


def refused(run, says):
    before = files(run)
    with pytest.raises(UsageError, match=says) as caught:
        resume(run, Console(quiet=True))
    assert "\n" not in str(caught.value)
    assert files(run) == before


@pytest.mark.parametrize("damage", [empty, missing])
def test_without_any_checkpoint_that_can_be_used_it_is_refused(damage, finished, tmp_path):
    run = copy(finished, tmp_path)
    for path in (run / "checkpoints").iterdir():
        damage(path)
    refused(run, r"6 iterations in metrics.csv and no checkpoint that can be used; .* \(nothing was changed\)")


@pytest.mark.parametrize("name", ["metrics.csv", "episodes.csv", "timing.csv"])
@pytest.mark.parametrize("number", [b"7", b"x", b""])
def test_a_wrong_number_in_an_early_row_is_refused(name, number, finished, tmp_path):
    run = copy(finished, tmp_path)
    header, first, *rest = (run / name).read_bytes().splitlines(keepends=True)
    (run / name).write_bytes(b"".join([header, number + first[first.index(b",") :], *rest]))
    refused(run, f"{name} is damaged")


def test_rows_of_two_processes_are_refused(finished, tmp_path):
    run = copy(finished, tmp_path)
    lines = (run / "metrics.csv").read_bytes().splitlines(keepends=True)
    (run / "metrics.csv").write_bytes(b"".join([*lines, *lines[4:]]))
    refused(run, "row 7 is of iteration 3, not of 6")


def test_an_environment_that_has_changed_is_refused(finished, tmp_path):
    run = copy(finished, tmp_path)
    saved = json.loads((run / "spaces.json").read_text())
    saved["action"]["high"][0] = 3.0
    (run / "spaces.json").write_text(json.dumps(saved))
    refused(run, "other spaces than tests.envs.gym_examples:make_walk")


def test_nothing_is_replaced_before_the_first_iteration_is_done(finished, tmp_path, monkeypatch):
    run = copy(finished, tmp_path)
    half(newest(run))
    (run / "checkpoints/.000008.safetensors.0123.tmp").touch()
    before = files(run)

    def fail(*arguments):
        raise RunError("broken")

    monkeypatch.setattr(loop, "iterate", fail)
    with pytest.raises(RunError, match="broken"):
        resume(run, Console(quiet=True))
    assert {path: files(run)[path] for path in before} == before
    monkeypatch.undo()
    resume(run, Console(quiet=True))
    assert_identical(finished, run, 6)
    assert (run / "metrics.csv.old").read_bytes() == (finished / "metrics.csv").read_bytes()
    assert (run / "checkpoints/000006.damaged").exists()
    assert not list(run.rglob("*.tmp"))


def test_a_folder_that_leads_elsewhere_is_refused(finished, tmp_path):
    run = copy(finished, tmp_path)
    (run / "checkpoints").rename(tmp_path / "elsewhere")
    (run / "checkpoints").symlink_to(tmp_path / "elsewhere")
    refused(run, "checkpoints is a symbolic link")


def test_an_iteration_that_another_process_wrote_stops_the_run(tmp_path):
    log = CsvLog(tmp_path / "metrics.csv")
    log.write([{"iteration": 0, "cost": 0.5}])
    CsvLog(tmp_path / "metrics.csv").write([{"iteration": 1, "cost": 0.5}])
    with pytest.raises(RunError, match="changed by another process"):
        log.write([{"iteration": 1, "cost": 0.25}])
    assert read_csv(log.path)["cost"].tolist() == [0.5, 0.5]


def test_a_checkpoint_whose_rows_were_lost_is_not_used(finished, tmp_path):
    """As after a loss of power on a disk that keeps no order; and the last row is torn."""
    run = copy(finished, tmp_path)
    metrics = run / "metrics.csv"
    lines = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join(lines[:6]) + lines[6][:10])
    assert len(read_csv(metrics)["cost"]) == 5
    console = Console(record=True, width=300, file=io.StringIO())
    resume(run, console)
    assert "ends before 000006.safetensors" in console.export_text()
    assert_identical(finished, run, 6)


def test_a_finished_run_says_so(finished, tmp_path, capsys):
    run = copy(finished, tmp_path)
    result = flashbulb.resume(run, env=FOREIGN)
    assert capsys.readouterr().out.count("\n") == 1
    assert result.summary["steps"] == SHORT["steps"]
    assert_identical(finished, run, 6)


def test_tensorboard_goes_on_where_the_checkpoint_was(finished, tmp_path):
    run = copy(finished, tmp_path)
    newest(run).unlink()
    resume(run, Console(quiet=True))
    first, second = sorted(run.glob("events.out.tfevents.*"), key=lambda path: path.name[-6:])
    assert len(costs_by_step(first)) == 6
    events = list(tfrecords(second.read_bytes()))
    (restart,) = [event for event in events if event.session_log.status == SessionLog.START]
    assert restart.step == 4 * SHORT["steps_per_iteration"] + 1  # TensorBoard hides older events from here on
    assert list(costs_by_step(second)) == [500, 600]
    assert costs_by_step(second).items() <= costs_by_step(first).items()


def costs_by_step(path):
    events = list(tfrecords(path.read_bytes()))
    return {event.step: v.simple_value for event in events for v in event.summary.value if v.tag == "cost"}


def test_newest_few_and_best_feasible_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for done in range(1, 7):
        checkpoints.save(done, {"x": np.array(done)})
    # Row n measures the policy of checkpoint n: 2 is the best within the limit, 3 is better but costs too much,
    # 1 is within the limit and worse, 6 has not sampled yet.
    metrics = {"return": np.array([99.0, 5, 7, 9, 6, 6]), "cost": np.array([0.0, 1, 25, 26, 1, 30])}
    best = best_feasible(metrics, 25.0, checkpoints.iterations())
    assert best == 2
    checkpoints.prune(newest=3, best=best)
    assert checkpoints.iterations() == [2, 4, 5, 6]
    assert best_feasible(metrics, 0.5, [1, 2, 3]) is None


def test_no_second_process_writes_into_a_run(finished, tmp_path):
    run = copy(finished, tmp_path)
    hold = (
        "import sys, pathlib; from flashbulb.storage.run_directory import RunDirectory\n"
        "with RunDirectory(pathlib.Path(sys.argv[1])).locked(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(run)], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="in use by another process"):
            resume(run, Console(quiet=True))
    resume(run, Console(quiet=True))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "no config.json"),
        ("", "cannot be read"),
        ('{"config": {"algorithm": "cpo"', "cannot be read"),
        ("[]", "cannot be read"),
        ('{"config": 3}', "algorithm and env"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "stepz": 3}}', "stepz"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "memory": {"k": 3}}}', "memory.k"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "memory": 3}}', "memory"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "steps": "many"}}', "steps: 'many'"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "steps": 0}}', "at least 1"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "policy": {"hidden": [1.5]}}}', "policy.hidden"),
        ('{"config": {"algorithm": "cpo", "env": "HazardField-v0", "memory": {"distance": "far"}}}', "memory.distance"),
    ],
)
def test_what_is_no_run_is_refused_in_one_sentence(text, says, tmp_path):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        resume(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(list(tmp_path.iterdir())) == (text is not None)


def test_the_configuration_is_read_as_it_was_written(finished):
    settings = SHORT | {"runs_dir": finished.parent, "name": finished.name}
    assert load_config(finished) == configure("mice-cpo", FOREIGN, **settings)


def test_networks_of_other_sizes_are_refused(finished, tmp_path):
    run = copy(finished, tmp_path)
    config = json.loads((run / "config.json").read_text())
    config["config"]["policy"]["hidden"] = [5]
    del config["id"]  # a run of the time before checkpoints were bound to their settings
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="other sizes"):
        resume(run, Console(quiet=True))
