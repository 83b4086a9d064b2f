"""Cold starts: the learner is compiled beside the task, and the run is the same run."""

import os
import subprocess
import sys
import time

import pytest
from rich.console import Console

from flashbulb import kernel_cache
from flashbulb.algorithms.critic_fit import _descend
from flashbulb.algorithms.registry import configure
from flashbulb.training import rehearsal
from flashbulb.training.iteration import run_parts
from flashbulb.training.loop import train
from flashbulb.training.rehearsal import start_compiling, start_rehearsal

SIZES = {"num_envs": 4, "steps_per_iteration": 400, "steps": 800, "policy": {"hidden": (8,)}}
KERNELS = [sys.executable, "-m", "flashbulb.training.compile_kernels", "2"]


@pytest.fixture
def cold(monkeypatch):
    """As if nothing had ever been compiled; returns the helpers that were started."""
    started = []
    monkeypatch.setattr(rehearsal, "is_cached", lambda function: False)
    monkeypatch.setattr(rehearsal, "usable_cores", lambda: [0, 1])
    monkeypatch.setattr(rehearsal, "start_helper", lambda *command: started.append(command))
    return started


@pytest.mark.parametrize("algorithm", ["mice-cpo", "mice-pid"])
def test_a_rehearsed_run_is_the_same_run(algorithm, tmp_path, cold):
    for name, threads in (("plain", 1), ("rehearsed", 2)):
        config = configure(algorithm, "HazardField-v0", runs_dir=tmp_path, name=name, threads=threads, **SIZES)
        train(config, console=Console(quiet=True))
    assert cold == [("flashbulb.training.compile_kernels", "2")]  # one thread has nothing to gain
    plain, rehearsed = ((tmp_path / name / "metrics.csv").read_bytes() for name in ("plain", "rehearsed"))
    assert plain == rehearsed


@pytest.mark.parametrize(("algorithm", "settings"), [("mice-cpo", {}), ("trpo-pid", {"cost_limit": {"hazards": 5.0}})])
def test_a_rehearsal_compiles_what_the_first_iteration_needs(algorithm, settings, tmp_path, cold):
    env = "SafetyPointGoal1-v0" if settings else "HazardField-v0"
    config = configure(algorithm, env, runs_dir=tmp_path, threads=2, **SIZES, **settings)
    with run_parts(config, None) as parts:
        rehearsed = start_rehearsal(config, parts)
        assert rehearsed.ready is not None
        rehearsed.ready()
        learner = parts.learner
        compiled = [learner._estimate._cache_size(), learner._improve._cache_size()]
        assert compiled == [1, 1]
        rehearsal.iterate(config, rehearsed, rehearsal.start(parts.env, learner, config))
        assert [learner._estimate._cache_size(), learner._improve._cache_size()] == compiled


def test_nothing_is_started_where_all_is_compiled_or_one_core_is_all(tmp_path, cold, monkeypatch):
    config = configure("mice-cpo", "HazardField-v0", runs_dir=tmp_path, threads=2)
    monkeypatch.setattr(rehearsal, "is_cached", lambda function: True)
    assert not start_compiling(config)
    monkeypatch.setattr(rehearsal, "is_cached", lambda function: False)
    monkeypatch.setattr(rehearsal, "usable_cores", lambda: [0])
    assert not start_compiling(config)
    assert not cold


def test_whether_something_is_cached_is_seen_in_the_cache(tmp_path, monkeypatch):
    class Function:
        py_func = _descend.py_func
        stats = type("Stats", (), {"cache_path": str(tmp_path)})

    assert not kernel_cache.is_cached(Function)
    (tmp_path / "critic_fit._descend-56.py312.nbi").touch()
    assert kernel_cache.is_cached(Function)
    Function.stats.cache_path = None
    assert kernel_cache.is_cached(Function)


def test_the_helper_ends_with_its_parent(tmp_path):
    places = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    helper = subprocess.Popen(KERNELS, stdin=subprocess.PIPE, env=places)
    helper.stdin.close()  # as the system does when the parent is killed
    assert helper.wait(60) == 1


def test_a_helper_that_fails_or_is_stopped_is_no_obstacle(monkeypatch):
    kernel_cache.wait_for_helper()
    kernel_cache.start_helper("flashbulb.no_such_module")
    kernel_cache.wait_for_helper()
    assert kernel_cache._helper is None
    kernel_cache.start_helper("http.server", "0")
    helper, begun = kernel_cache._helper, time.perf_counter()
    kernel_cache.end_helper()
    assert helper.returncode is not None
    assert time.perf_counter() - begun < 30


@pytest.mark.slow
def test_what_the_helper_compiles_is_what_a_run_calls(tmp_path):
    places = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    with subprocess.Popen(KERNELS, stdin=subprocess.PIPE, env=places) as helper:
        assert helper.wait() == 0
    program = """
from pathlib import Path
import sys
from rich.console import Console
from flashbulb.algorithms.critic_fit import _descend
from flashbulb.algorithms.registry import configure
from flashbulb.memory.neighbours import _arrange, _fill, _search
from flashbulb.training.loop import train
sizes = {"num_envs": 4, "steps_per_iteration": 400, "steps": 800, "threads": 2}
train(configure("mice-cpo", "HazardField-v0", runs_dir=Path(sys.argv[1]), **sizes), console=Console(quiet=True))
for function in (_descend, _arrange, _fill, _search):
    assert function.stats.cache_hits and not function.stats.cache_misses, function
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=places, check=True)
