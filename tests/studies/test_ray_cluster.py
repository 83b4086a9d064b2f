"""Studies on a real Ray cluster of two nodes, of which one dies."""

import io
import sys
import threading
import time

import pytest
from rich.console import Console

from flashbulb import __version__
from flashbulb.config import to_dict
from flashbulb.errors import UsageError
from flashbulb.studies.ray_cluster import RayCluster, load_ray, refuse_silent, train_there
from flashbulb.studies.run_sync import Parcel
from flashbulb.studies.runner import execute
from tests.training.killing import assert_identical, rows
from tests.studies.small_study import BROKEN, reference, small_plan

LONG = 400  # iterations: enough for a node to die in the middle, even if it began long before the other


@pytest.fixture
def cluster():
    """Two nodes with a CPU each."""
    load_ray()
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args=node)
    del node["include_dashboard"]
    nodes.second = nodes.add_node(**node)
    yield nodes
    nodes.shutdown()


def test_a_node_dies_and_the_results_are_those_of_an_undisturbed_run(cluster, tmp_path):
    plan = small_plan(tmp_path / "study", ("mice-cpo", "HazardField-v0"), seeds=(5, 6), steps=100 * LONG)
    done_at_death = []

    def kill_the_second_node():
        while min(rows(plan.run(job)) for job in plan.jobs) < 4:
            time.sleep(0.01)
        done_at_death.extend(rows(plan.run(job)) for job in plan.jobs)
        cluster.remove_node(cluster.second, allow_graceful=False)

    threading.Thread(target=kill_the_second_node, daemon=True).start()
    output = io.StringIO()
    lines = execute(plan, RayCluster(plan, cluster.address), Console(file=output, width=200), "")
    assert max(done_at_death) < LONG
    assert [line.state for line in lines] == ["finished", "finished"]
    assert output.getvalue().count(": its worker died (") == 1
    assert sum(plan.log(job).read_text().count("flashbulb resume ") for job in plan.jobs) == 1
    for job in plan.jobs:
        assert_identical(reference(tmp_path, job), plan.run(job), LONG)
        assert {"curves.png", "spaces.json", "timing.csv"} <= {path.name for path in plan.run(job).iterdir()}


def test_a_task_tells_why_its_run_failed(tmp_path):
    (job,) = small_plan(tmp_path / "study", ("cpo", BROKEN)).jobs
    told = list(train_there(to_dict(job.config), Parcel({}, ()), __version__))
    assert [news.ending for news in told[:-1]] == [None] * (len(told) - 1)
    assert told[-1].ending.kind == "failed"
    assert told[-1].ending.reason.startswith("cpo_broken_nan_reward stopped in iteration 0: ")
    log = b"".join(news.log for news in told).decode()
    assert "flashbulb train cpo" in log
    assert log.strip().endswith(told[-1].ending.reason.split(": ", 1)[1])
    assert any("config.json" in news.parcel.files for news in told)


def test_a_worker_with_another_version_is_not_trusted(tmp_path):
    (job,) = small_plan(tmp_path / "study", ("cpo", "HazardField-v0")).jobs
    plain = to_dict(job.config)
    (news,) = train_there(plain, Parcel({}, ()), "0.0.0")
    assert news.ending.kind == "failed"
    assert news.ending.reason.startswith(f"the worker has Flashbulb {__version__} and the driver 0.0.0; install")


def test_without_ray_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"^on: Ray is missing; install it with pip install flashbulb\[ray\]\.$"):
        load_ray()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"nobody answers at 127\.0\.0\.1:1 \(.*refused\); is `ray start --head` running\?$"),
        ("127.0.0.1:99999", "nobody answers at "),
        ("ray://127.0.0.1:10001", "'ray://127.0.0.1:10001' is not allowed; it must be auto or HOST:PORT.$"),
        ("somewhere", "'somewhere' is not allowed; it must be auto or HOST:PORT.$"),
    ],
)
def test_an_address_where_nobody_answers_is_one_sentence_at_once(address, message):
    with pytest.raises(UsageError, match=f"^ray_address: {message}"):
        refuse_silent(address)
