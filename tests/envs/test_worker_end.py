"""Environments that hang, exit or answer with negative costs: they are named, and no worker outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from flashbulb.envs import make
from flashbulb.errors import RunError, UsageError
from flashbulb.training.batch_means import RunningEpisodes
from flashbulb.training.collect import Sampler, collect

EXAMPLES = "tests.envs.gym_examples"
HANGING = (
    "import numpy as np; from flashbulb.envs import make\n"
    f"env = make('{EXAMPLES}:broken_hangs', 1, threads=1)\n"
    "env.reset(); print(env._pool._workers[0]._process.pid, flush=True)\n"
    "env.step(np.zeros((1, 2)))"
)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_that_hangs_ends_with_its_killed_parent():
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        assert is_alive(worker)
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while is_alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_step_that_takes_too_long_is_named_and_its_worker_killed():
    env = make(f"{EXAMPLES}:broken_hangs", 3, threads=1, step_timeout=0.3)
    env.reset()
    worker = env._pool._workers[0]._process
    with pytest.raises(RunError, match=r"environments 0 to 2 of .*broken_hangs took longer than 0\.3 s for a step"):
        env.step(np.zeros((3, 2)))
    assert worker.wait(20) == -signal.SIGKILL
    env.close()


def test_a_step_in_time_is_unchanged():
    one, other = make(f"{EXAMPLES}:make_walk", 2, threads=1, step_timeout=60.0), make(f"{EXAMPLES}:make_walk", 2)
    for env in (one, other):
        env.reset(seed=1)
    for ours, theirs in zip(one.step(np.ones((2, 2)))[:5], other.step(np.ones((2, 2)))[:5], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    one.close()
    other.close()


@pytest.mark.parametrize("vectorise", ["serial", "threads"])
def test_a_timeout_needs_processes(vectorise):
    with pytest.raises(UsageError, match="step_timeout: it is not allowed here; it needs environments in processes"):
        make(f"{EXAMPLES}:make_walk", 1, vectorise=vectorise, step_timeout=1.0)


@pytest.mark.parametrize("vectorise", ["serial", "threads", "processes"])
def test_an_environment_that_exits_does_not_end_the_run_as_if_it_were_finished(vectorise):
    env = make(f"{EXAMPLES}:broken_exits", 2, threads=2, vectorise=vectorise)
    env.reset()
    with pytest.raises(RunError, match=r"environment \d of .*broken_exits raised SystemExit: 0"):
        env.step(np.zeros((2, 2)))
    env.close()


@pytest.mark.parametrize(("fault", "says"), [("negative", r"a cost is negative \(-0\.5\)")])
def test_negative_costs_are_refused_by_training_as_by_check(fault, says):
    env = make(f"{EXAMPLES}:broken_{fault}", 2, vectorise="serial")
    policy = SimpleNamespace(act=lambda params, obs, noise: noise, to_env=lambda action: action)
    running = RunningEpisodes.start(env.reset(seed=0)[0])
    with pytest.raises(UsageError, match=says):
        collect(env, Sampler(policy, None, lambda obs: obs), np.zeros((5, 2, 2)), running, 0)
