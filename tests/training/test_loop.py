"""A run from the outside: its files, its reproducibility, and that it learns."""

import json

import numpy as np
import pytest
from rich.console import Console
from tensorboardX.proto.event_pb2 import Event

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import train

SMALL = {
    "steps": 6_000,
    "num_envs": 4,
    "steps_per_iteration": 2_000,
    "policy": {"hidden": (8,)},
    "critic": {"hidden": (8,), "passes": 2},
    "memory": {"neighbours": 3},
}


def quiet(algorithm, env="HazardField-v0", **settings):
    return train(configure(algorithm, env, **settings), console=Console(quiet=True))


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return quiet("mice-cpo", runs_dir=runs, seed=3, **SMALL)


def test_a_run_leaves_its_files(small_run):
    config = json.loads((small_run.directory / "config.json").read_text())
    assert config["config"]["algorithm"] == "mice-cpo"
    assert config["config"]["memory"]["neighbours"] == 3
    assert config["versions"]["flashbulb"] == flashbulb.__version__
    assert "commit" in config
    assert (small_run.directory / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (small_run.directory / "checkpoints").is_dir()
    assert any((small_run.directory / "checkpoints").iterdir())


def test_metrics_have_a_row_per_iteration(small_run):
    metrics = read_csv(small_run.directory / "metrics.csv")
    assert metrics["iteration"].tolist() == [0, 1, 2]
    assert metrics["steps"].tolist() == [2000, 4000, 6000]
    for name in ("return", "cost", "length", "violation_rate", "mean_excess", "cost_rate", "beta", "memory_size", "kl"):
        assert np.isfinite(metrics[name]).all(), name
    over = metrics["cost"] > 25
    np.testing.assert_allclose(metrics["violation_rate"], np.cumsum(over) / [1, 2, 3])
    excess = np.maximum(metrics["cost"] - 25, 0)
    np.testing.assert_allclose(metrics["mean_excess"], np.cumsum(excess) / [1, 2, 3])


def test_episodes_and_metrics_agree(small_run):
    metrics = read_csv(small_run.directory / "metrics.csv")
    episodes = read_csv(small_run.directory / "episodes.csv")
    assert (episodes["length"] == 1000).all()
    for iteration in metrics["iteration"][metrics["episodes"] > 0]:
        mine = episodes["iteration"] == iteration
        index = int(iteration)
        assert metrics["cost"][index] == pytest.approx(episodes["cost"][mine].mean())
        assert metrics["return"][index] == pytest.approx(episodes["return"][mine].mean())
        assert metrics["episodes"][index] == mine.sum()
    # 500 vector steps an iteration, episodes of 1000: none finishes in the first iteration, all do in the second
    assert metrics["episodes"].tolist() == [0, 4, 0]
    assert metrics["episode_estimated"].tolist() == [1, 0, 1]


def test_tensorboard_shows_the_names_and_numbers_of_the_csv_over_steps(small_run):
    metrics = read_csv(small_run.directory / "metrics.csv")
    (events,) = small_run.directory.glob("events.out.tfevents.*")
    costs = {}
    for event in tfrecords(events.read_bytes()):
        for value in event.summary.value:
            if value.tag == "cost":
                costs[event.step] = value.simple_value
    assert list(costs) == metrics["steps"].tolist()
    np.testing.assert_allclose(list(costs.values()), metrics["cost"], rtol=1e-6)


def tfrecords(data):
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        yield Event.FromString(data[at + 12 : at + 12 + length])
        at += 16 + length


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(small_run, tmp_path):
    again = quiet("mice-cpo", runs_dir=tmp_path, seed=3, threads=1, **SMALL)
    assert (again.directory / "metrics.csv").read_bytes() == (small_run.directory / "metrics.csv").read_bytes()
    assert (again.directory / "episodes.csv").read_bytes() == (small_run.directory / "episodes.csv").read_bytes()
    other = quiet("mice-cpo", runs_dir=tmp_path, seed=4, **SMALL)
    assert (other.metrics["return"] != again.metrics["return"]).all()


def test_from_python_as_from_the_command_line(tmp_path, capsys):
    result = flashbulb.train("mice-cpo", "HazardField-v0", runs_dir=tmp_path, **SMALL)
    assert result.summary["steps"] == 6000
    printed = capsys.readouterr().out
    for words in ("episode return", "episode cost", "violation rate", "metrics.csv"):
        assert words in printed


@pytest.mark.parametrize("algorithm", [pytest.param("cpo", marks=pytest.mark.slow), "mice-cpo"])
def test_learning_on_the_hazard_field(algorithm, tmp_path):
    """Return rises from nothing to some tens while the episode cost is brought from 40 to about the limit."""
    result = quiet(algorithm, runs_dir=tmp_path, seed=11, steps=400_000, critic={"minibatch": 256})
    returns, cost = result.metrics["return"], result.metrics["cost"]
    assert returns[:2].mean() < 10
    assert returns[-4:].mean() > 40
    assert cost[-8:].mean() < 25 * 1.25
