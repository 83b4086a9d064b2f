"""Measures of one run by hand, and against what a run counts of itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from flashbulb.analysis.run_measures import measures
from flashbulb.errors import UsageError
from flashbulb.storage.csv_log import CsvLog
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training.metrics import Totals
from tests.studies.written_run import written_run

NAN = float("nan")


def test_violations_of_the_last_hundred_episodes(tmp_path):
    """Limit 10. No episode ends in the first iteration, 60 cost 8 in the second, 60 cost 14 in each of the next two."""
    run = written_run(tmp_path, "r", {"return": [0.0] * 4, "cost": [99.0, 0.0, 0.0, 99.0]}, cost_limit=10.0)
    assert np.isnan(measures(run)["violation_rate_hundred"]), "no episodes.csv yet"
    ended = [(1, 8.0)] * 60 + [(2, 14.0)] * 60 + [(3, 14.0)] * 60
    CsvLog(RunDirectory(run).episodes).write([{"iteration": n, "steps": 0, "cost": cost} for n, cost in ended])
    means = [8.0, (40 * 8 + 60 * 14) / 100, 14.0]
    assert [mean > 10.0 for mean in means] == [False, True, True]
    found = measures(run)
    assert found["violation_rate_hundred"] == pytest.approx(2 / 3), "the first iteration has no mean"
    assert found["violation_rate_hundred_late"] == 1.0
    assert found["violation_rate"] == 0.5, "of what the run itself measured"


def test_measures_by_hand(tmp_path):
    """Twenty iterations; limit 10; the cost alternates between 8 and 14 but for the last, which is 10."""
    cost = [8.0, 14.0] * 9 + [8.0, 10.0]
    found = measures(
        written_run(
            tmp_path,
            "r",
            {
                "return": [float(n) for n in range(20)],
                "cost": cost,
                "cost_rate": [0.5] * 10 + [0.25] * 10,
                "critic_bias_sampled_unsafe": [-3.0] * 18 + [-1.0, -5.0],
                "critic_bias_rollout": [NAN, -8.0] + [NAN] * 10 + [-4.0] + [NAN] * 6 + [-2.0],
                "true_cost_value": [NAN, 9.0] + [NAN] * 10 + [6.0] + [NAN] * 6 + [7.0],
                "anticipation": [NAN] * 15 + [0.5, 0.6, 0.7, 0.8, 0.9],
                "beta": [5.0 - 0.1 * n for n in range(20)],
                "memory_size": [0] * 10 + [10, 30] * 5,
                "intrinsic_return": [0.0] * 10 + [1.0, 2.0] * 5,
            },
            cost_limit=10.0,
            iterations=40,
            seconds=0.5,
        )
    )
    assert found["return"] == 18.5, "the last two of twenty"
    assert found["cost"] == 9.0
    assert found["return_feasible"] == np.mean([10, 12, 14, 16, 18, 19]), "a cost at the limit keeps it"
    assert found["return_first"] == 0
    assert found["return_area"] == pytest.approx(9.5)
    assert found["violation_rate"] == 9 / 20
    assert found["violation_rate_late"] == 4 / 10
    assert found["mean_excess"] == pytest.approx(9 * 4 / 20)
    assert found["mean_excess_late"] == pytest.approx(4 * 4 / 10)
    assert found["cost_rate"] == 0.25
    assert found["cost_rate_late"] == pytest.approx((0.25 * 2000 - 0.5 * 1000) / 1000, abs=1e-12)
    assert found["critic_bias_rollout"] == -3.0
    assert found["true_cost_value"] == 6.5
    assert np.isnan(found["critic_bias_rollout_risky"]), "not measured"
    assert found["anticipation"] == pytest.approx(0.7)
    assert found["beta"] == pytest.approx(3.1)
    assert (found["memory_size"], found["intrinsic_return"]) == (20, 1.5)
    assert (found["steps"], found["finished"]) == (2000, 0)
    assert (found["seconds"], found["steps_per_second"]) == (10, 200)


def test_an_iteration_without_a_cost_has_no_bias_at_unsafe_states(tmp_path):
    """A hundred steps each; one cost in the first iteration, none in the second, three in the third."""
    rates = {"cost_rate": [1 / 100, 1 / 200, 4 / 300], "critic_bias_sampled_unsafe": [-2.0, 0.0, -4.0]}
    found = measures(written_run(tmp_path, "r", {"return": [1.0] * 3, "cost": [1.0] * 3, **rates}))
    assert found["bias_unsafe"] == -3.0


def test_a_run_that_never_keeps_its_limit_has_no_feasible_return(tmp_path):
    found = measures(written_run(tmp_path, "r", {"return": [1.0] * 3, "cost": [30.0] * 3}))
    assert np.isnan(found["return_feasible"])
    assert (found["violation_rate"], found["mean_excess"], found["finished"]) == (1, 5, 1)


def test_a_run_before_its_first_iteration_has_the_same_names(tmp_path):
    nothing = measures(written_run(tmp_path, "fresh", {"return": []}, iterations=3))
    something = measures(written_run(tmp_path, "begun", {"return": [1.0], "cost": [2.0]}, iterations=3))
    assert list(nothing) == list(something)
    assert (nothing["steps"], nothing["finished"]) == (0, 0)
    assert np.isnan([nothing["return"], nothing["violation_rate"], nothing["cost_rate"], nothing["beta"]]).all()
    assert (something["return"], something["cost"], something["return_area"]) == (1, 2, 1)


def test_damage_is_one_sentence(tmp_path):
    run = written_run(tmp_path, "r", {"return": [1.0], "cost": [2.0]}, seconds=1.0)
    (run / "timing.csv").write_text("iteration,seconds\n0,long\n")
    with pytest.raises(UsageError, match=r"timing\.csv cannot be read"):
        measures(run)
    with pytest.raises(UsageError, match="not the directory of a run"):
        measures(tmp_path)


def test_measures_agree_with_what_a_run_counts(tmp_path):
    """A run keeps totals as it goes; ours are made of its rows."""
    rng, totals, limit = np.random.default_rng(0), Totals.start(), 3.0
    columns, paid = {name: [] for name in ("return", "cost", "cost_rate", "violation_rate", "mean_excess")}, []
    for _ in range(7):
        costs = rng.integers(0, 2, (50, 2)).astype(float)
        episode = float(rng.uniform(0, 6))
        episodes, means = SimpleNamespace(costs=[episode]), SimpleNamespace(cost=episode)
        batch = SimpleNamespace(cost_sums=costs.sum(), size=costs.size, episodes=episodes, means=means)
        totals = totals.add(batch, limit)
        count, steps = int(totals.iterations), int(totals.steps)
        row = (0.0, episode, totals.cost / steps, totals.violations / count, totals.excess / count)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(float(value))
        paid.append(costs.sum())
    found = measures(written_run(tmp_path, "r", columns, cost_limit=limit))
    for name in ("violation_rate", "mean_excess", "cost_rate"):
        assert found[name] == pytest.approx(columns[name][-1]), name
    assert found["cost_rate_late"] == pytest.approx(sum(paid[3:]) / 400)
