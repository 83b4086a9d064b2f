"""Studies on a local Ray cluster of two nodes, one of which is killed."""

import io
import os
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from flashbulb import __version__
from flashbulb.config import to_dict
from flashbulb.errors import UsageError
from flashbulb.studies.ray_cluster import RayPool, check_address, load_ray, run_remote
from flashbulb.studies.run_sync import NO_CHANGES
from flashbulb.studies.runner import run_study
from tests.studies.small_study import BROKEN, reference, small_plan
from tests.training.killing import assert_identical, rows

RAY_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
LONG = 400  # iterations: long enough that a node can be killed before either run is finished


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes with a CPU each."""
    for name in RAY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    load_ray()
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args=node)
    del node["include_dashboard"]
    nodes.second = nodes.add_node(**node)
    yield nodes
    nodes.shutdown()


@pytest.mark.slow
def test_results_are_unchanged_when_a_node_dies(cluster, tmp_path):
    plan = small_plan(tmp_path / "study", ("mice-cpo", "HazardField-v0"), seeds=(5, 6), steps=100 * LONG)
    done_at_death = []

    def kill_the_second_node():
        deadline = time.monotonic() + 240
        while min(rows(plan.run_path(job)) for job in plan.jobs) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        done_at_death.extend(rows(plan.run_path(job)) for job in plan.jobs)
        cluster.remove_node(cluster.second, allow_graceful=False)

    threading.Thread(target=kill_the_second_node, daemon=True).start()
    output = io.StringIO()
    statuses = run_study(plan, RayPool(plan, cluster.address), Console(file=output, width=200), "")
    assert max(done_at_death) < LONG
    assert [status.state for status in statuses] == ["finished", "finished"]
    assert output.getvalue().count(": its worker died (") == 1
    assert sum(plan.log_path(job).read_text().count("flashbulb resume ") for job in plan.jobs) == 1
    for job in plan.jobs:
        assert_identical(reference(tmp_path, job), plan.run_path(job), LONG)
        assert {"curves.png", "spaces.json", "timing.csv"} <= {path.name for path in plan.run_path(job).iterdir()}


def test_a_task_reports_why_its_run_failed(tmp_path):
    (job,) = small_plan(tmp_path / "study", ("cpo", BROKEN)).jobs
    messages = list(run_remote(to_dict(job.config), NO_CHANGES, __version__))
    assert [message.exit for message in messages[:-1]] == [None] * (len(messages) - 1)
    assert messages[-1].exit.status == "failed"
    assert messages[-1].exit.reason.startswith("cpo_broken_nan_reward stopped in iteration 0: ")
    log = b"".join(message.log for message in messages).decode()
    assert "flashbulb train cpo" in log
    assert log.strip().endswith(messages[-1].exit.reason.split(": ", 1)[1])


def test_a_worker_of_another_version_is_refused(tmp_path):
    (job,) = small_plan(tmp_path / "study", ("cpo", "HazardField-v0")).jobs
    plain = to_dict(job.config)
    (message,) = run_remote(plain, NO_CHANGES, "0.0.0")
    assert message.exit.status == "failed"
    assert message.exit.reason.startswith(f"the worker has Flashbulb {__version__} and the driver 0.0.0; install")


def test_tokens_are_on_and_a_local_ray_is_on_the_loopback_interface(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    for name in RAY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")  # so that it is as it was after the test
        monkeypatch.delenv(name)
    load_ray()
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert "RAY_AUTH_TOKEN" not in os.environ
    load_ray(local=True)
    first = os.environ.pop("RAY_AUTH_TOKEN")
    load_ray(local=True)
    assert len(first) == 64
    assert os.environ["RAY_AUTH_TOKEN"] != first
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    load_ray(local=True)
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_missing_ray_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"^on: Ray is missing; install it with pip install flashbulb\[ray\]\.$"):
        load_ray()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"no answer from 127\.0\.0\.1:1 \(.*refused\); is `ray start --head` running\?$"),
        ("127.0.0.1:99999", "no answer from "),
        ("ray://127.0.0.1:10001", "'ray://127.0.0.1:10001' is not allowed; it must be auto or HOST:PORT.$"),
        ("somewhere", "'somewhere' is not allowed; it must be auto or HOST:PORT.$"),
    ],
)
def test_an_address_that_does_not_answer_is_refused_at_once(address, message):
    with pytest.raises(UsageError, match=f"^ray_address: {message}"):
        check_address(address)
