"""Runs with several costs: their columns, that they resume exactly, and that each limit is kept."""

import io
import shutil

import numpy as np
import pytest
from rich.console import Console

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.analysis.memory_snapshots import load_memory_snapshots
from flashbulb.analysis.run_measures import measures
from flashbulb.analysis.run_table import tabulate
from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import draw_comparison
from flashbulb.report.page import report_data
from flashbulb.storage.checkpoint import Checkpoints, load_arrays
from flashbulb.storage.csv_log import read_csv
from flashbulb.storage.run_directory import load_config
from flashbulb.storage.run_list import read_run
from flashbulb.storage.verify_run import verify
from flashbulb.training.callbacks import StopWhenLimitIsKept
from flashbulb.training.loop import resume, train
from tests.algorithms.corridor import STEPS, best_return
from tests.algorithms.test_registry import FAST, TOLERANCE
from tests.algorithms.two_corridors import TwoCorridors

ENVS = 8
TINY = {
    "num_envs": ENVS,
    "steps_per_iteration": ENVS * STEPS,
    "steps": 4 * ENVS * STEPS,
    "checkpoint_every": 2,
    "keep_checkpoints": 9,
    "threads": 1,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
}
LIMITS = {"right": 1.0, "up": 9.0}
MICE = "mice-trpo-pid"


def quiet():
    return Console(file=io.StringIO(), width=120)


def tiny(runs_dir, name="r", **settings):
    given = {"memory": {"neighbours": 2}, "warm_up": 0, "stagger": False, "cost_estimate": "episodes"} | settings
    return configure(MICE, "TwoCorridors", cost_limit=LIMITS, runs_dir=runs_dir, name=name, **TINY, **given)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run of the algorithm with all parts (multiplier, margin, memory), and what it printed."""
    console = quiet()
    result = train(tiny(tmp_path_factory.mktemp("several")), console, env=TwoCorridors(ENVS))
    return result, console.file.getvalue()


def test_every_cost_has_its_columns_and_one_leads(done):
    metrics = done[0].metrics
    each = ("cost", "cost_standard_error", "finished_cost", "violation_rate", "mean_excess", "cost_rate", "lambda")
    each += ("margin", "margin_z", "constraint", "beta", "memory_size", "intrinsic_cost", "cost_value", "cost_loss")
    for column in each:
        assert {f"{column}_right", f"{column}_up"} <= set(metrics), column
    costs = np.c_[metrics["cost_right"], metrics["cost_up"]]
    leads = ((costs - [1, 9]) / [1, 9]).argmax(axis=1)
    np.testing.assert_array_equal(metrics["cost"], costs[np.arange(4), leads])
    np.testing.assert_array_equal(metrics["limit"], np.array([1, 9])[leads])
    over = costs > [1, 9]
    assert metrics["violation_rate"][-1] == over.any(axis=1).mean()
    assert [metrics[f"violation_rate_{name}"][-1] for name in LIMITS] == over.mean(axis=0).tolist()
    assert metrics["mean_excess_right"][-1] == pytest.approx(np.maximum(costs[:, 0] - 1, 0).mean())
    total = metrics["cost_rate_right"][-1] + metrics["cost_rate_up"][-1]
    assert metrics["cost_rate"][-1] == pytest.approx(total)
    assert metrics["memory_size"][-1] == metrics["memory_size_right"][-1] + metrics["memory_size_up"][-1]
    assert not {"lambda", "margin", "beta"} & set(metrics)


def test_every_episode_has_each_cost(done):
    result = done[0]
    episodes = read_csv(result.directory / "episodes.csv")
    for name in LIMITS:
        for n in range(4):
            own = episodes[f"cost_{name}"][episodes["iteration"] == n]
            assert own.mean() == pytest.approx(result.metrics[f"cost_{name}"][n])
    lead = np.where(episodes["cost_right"] / 1 >= episodes["cost_up"] / 9, episodes["cost_right"], episodes["cost_up"])
    np.testing.assert_array_equal(episodes["cost"], lead)


def test_what_a_run_prints_names_them(done):
    shown = done[1]
    assert "episode cost right" in shown
    assert "episode cost up" in shown
    assert "above a limit" in shown
    assert "(right " in shown


def test_it_resumes_exactly(done, tmp_path):
    result = done[0]
    shutil.copytree(result.directory, tmp_path / "r")
    checkpoints = Checkpoints(tmp_path / "r" / "checkpoints")
    checkpoints.path(4).unlink()
    again = resume(tmp_path / "r", quiet(), env=TwoCorridors(ENVS))
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / "r" / name).read_bytes() == (result.directory / name).read_bytes()
    assert again.metrics["steps"][-1] == TINY["steps"]
    arrays = load_arrays(checkpoints.path(4))
    expected = load_arrays(result.directory / "checkpoints" / "000004.safetensors")
    assert set(arrays) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    # Everything that belongs to a cost is there for each.
    assert arrays["multiplier/integral"].shape == arrays["totals/each/violations"].shape == (2,)
    assert {"memory/right/states", "memory/up/states", "balance/right/b", "balance/up/b"} <= set(arrays)


def test_it_verifies_and_another_starts_from_it(done, tmp_path):
    result = done[0]
    assert verify(result.directory).problems == []
    config = tiny(tmp_path, "second", init_from=result.directory, seed=1)
    assert len(train(config, quiet(), env=TwoCorridors(ENVS)).metrics["cost_up"]) == 4
    one = configure("trpo-pid", "TwoCorridors", init_from=result.directory, runs_dir=tmp_path, **TINY)
    with pytest.raises(UsageError, match="does not fit; critics"):
        train(one, quiet(), env=TwoCorridors(ENVS))


def test_lists_tables_and_figures_have_each(done, tmp_path, capsys):
    path = done[0].directory
    costs = {name: done[0].metrics[f"cost_{name}"][-1] for name in LIMITS}
    assert read_run(path).costs == pytest.approx(costs)
    assert run(["runs", str(path.parent)]) == 0
    listed = capsys.readouterr().out
    assert f"right {costs['right']:.2f}, up {costs['up']:.2f}" in listed
    assert "right 1, up 9" in listed
    assert measures(path)["cost_up"] == pytest.approx(costs["up"])
    _, (row,) = tabulate([path])
    assert (row["cost_right"], row["cost_up"]) == pytest.approx(tuple(costs.values()))
    draw_comparison([path], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    data = report_data([path], 0, None)
    charts = {chart["column"]: chart for chart in data["tasks"][0]["charts"]}
    assert (charts["cost_right"]["limits"], charts["cost_up"]["limits"]) == ([1.0], [9.0])
    assert "cost" not in charts  # the leading one would be a curve of now this, now that
    assert "cost: up" in data["tables"]["summary"]["headings"]


def test_each_has_its_own_memory_to_look_at(done):
    path, config = done[0].directory, load_config(done[0].directory)
    sizes = [load_memory_snapshots(path, config, name)[-1].memory.size for name in LIMITS]
    assert sizes == [done[0].metrics[f"memory_size_{name}"][-1] for name in LIMITS]
    with pytest.raises(UsageError, match=r"'left' is not a cost of .*; it has right, up"):
        load_memory_snapshots(path, config, "left")


def test_a_name_that_the_environment_does_not_have_stops_before_anything_starts(tmp_path):
    config = configure("trpo-pid", "TwoCorridors", cost_limit={"left": 1.0}, runs_dir=tmp_path / "runs", **TINY)
    with pytest.raises(UsageError, match="no cost 'left'; TwoCorridors has right, up"):
        train(config, quiet(), env=TwoCorridors(ENVS))
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_evaluation_and_stopping_know_each_limit(tmp_path):
    """On a Gymnasium environment, through its worker processes, with a callback that stops."""
    env = "tests.envs.gym_examples:make_two_costs"
    settings = TINY | {"num_envs": 3, "steps_per_iteration": 150, "steps": 600}
    limit = {"far": 30.0, "above": 30.0}
    result = flashbulb.train(
        "crpo", env, cost_limit=limit, runs_dir=tmp_path, callbacks=[StopWhenLimitIsKept(2)], verbose=False, **{
            name: value for name, value in settings.items() if name not in ("checkpoint_every", "keep_checkpoints")
        },
    )  # fmt: skip
    assert len(result.metrics["cost"]) == 2
    assert {"for_cost_far", "for_cost_above"} <= set(result.metrics)
    found = flashbulb.evaluate(result.directory, episodes=6, deterministic=False, env=env)["stochastic"]
    assert found["share_over_limit"].mean == 0.0
    assert found["cost"].mean == max(found["cost_far"].mean, found["cost_above"].mean)


def test_each_limit_binds_on_its_own(tmp_path):
    """The best return under both limits is nearly reached, and neither is paid for with the other."""
    limits, fast = {"right": 5.0, "up": 20.0}, {name: FAST[name] for name in FAST if name != "balance"}
    config = configure(
        "trpo-lag", "TwoCorridors", cost_limit=limits, seed=0, runs_dir=tmp_path, threads=1, steps=1600 * 45,
        gamma=0.95, cost_gamma=0.95, **fast,
    )  # fmt: skip
    metrics = train(config, quiet(), env=TwoCorridors(20)).metrics
    for name, limit in limits.items():
        assert 0.75 * limit < metrics[f"cost_{name}"][-15:].mean() < limit + 2 * TOLERANCE, name
        assert metrics[f"lambda_{name}"][-15:].mean() > 0.05, name
    assert metrics["return"][-15:].mean() > 0.8 * sum(best_return(int(limit)) for limit in limits.values())
