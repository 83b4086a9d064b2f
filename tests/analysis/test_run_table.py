"""Tables of runs with chosen numbers, whose statistics are worked out by hand."""

import csv

import numpy as np
import pytest

from flashbulb.analysis.run_table import ALL_TASKS, tabulate, text_tables, write_table
from tests.studies.written_run import written_run

TASKS = ("HazardField-v0", "SafetyPointGoal1-v0")
# Return and cost, the same in every iteration but the first, whose return is 0; limit 25. By task, algorithm and seed.
ENDS = {
    (TASKS[0], "cpo"): [(10.0, 26.0), (20.0, 24.0), (30.0, 31.0)],
    (TASKS[0], "mice-cpo"): [(15.0, 20.0), (20.0, 20.0), (25.0, 27.0)],
    (TASKS[1], "cpo"): [(1.0, 30.0), (3.0, 30.0), (2.0, 30.0)],
    (TASKS[1], "mice-cpo"): [(4.0, 20.0), (4.0, 30.0), (4.0, 20.0)],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    parent = tmp_path_factory.mktemp("runs")
    return [
        written_run(
            parent,
            f"{algorithm}_{task}_{seed}",
            {"return": [0.0] + [end] * 3, "cost": [cost] * 4},
            algorithm,
            task,
            seconds=2.0,
            seed=seed,
        )
        for (task, algorithm), ends in ENDS.items()
        for seed, (end, cost) in enumerate(ends)
    ]


def row_of(rows, task, label):
    (row,) = [row for row in rows if (row["task"], row["label"]) == (task, label)]
    return row


def test_a_row_of_statistics_by_hand(runs):
    measured, statistics = tabulate(runs)
    assert len(measured) == 12
    assert [(row["task"], row["label"]) for row in statistics[:4]] == list(ENDS)
    row = row_of(statistics, TASKS[0], "cpo")
    assert (row["runs"], row["tasks"], row["unfinished"], row["versus"]) == (3, 1, 0, "")
    assert [row[f"return{end}"] for end in ("", "_low", "_high")] == [20, 10, 30]
    assert (row["return_feasible"], row["return_feasible_seeds"]) == (15, 1), "one seed, four iterations, one untrained"
    assert row["violation_rate"] == pytest.approx(2 / 3)
    assert row["mean_excess"] == pytest.approx((1 + 0 + 6) / 3)
    assert row["seconds"] == 8
    assert np.isnan(row["critic_bias_rollout"])


def test_improvement_over_the_base(runs):
    row = row_of(tabulate(runs)[1], TASKS[0], "mice-cpo")
    assert row["versus"] == "cpo"
    # Pairs of returns: 15 beats 10; 20 beats 10 and ties 20; 25 beats 10 and 20.
    assert row["better_return"] == pytest.approx((1 + 1.5 + 2) / 9)
    # Violation rates of ours are 0, 0, 1, of theirs 1, 0, 1: 2.5 + 2.5 + 1 pairs are won.
    assert row["better_violation_rate"] == pytest.approx(6 / 9)
    # Excess of ours is 0, 0, 2, of theirs 1, 0, 6.
    assert row["better_mean_excess"] == pytest.approx((2.5 + 2.5 + 1) / 9)
    assert row["better_return_seeds"] == 6


def test_all_tasks_on_one_scale(runs):
    statistics = tabulate(runs)[1]
    row = row_of(statistics, ALL_TASKS, "cpo")
    assert (row["tasks"], row["runs"]) == (2, 6)
    assert np.isnan(row["return"]), "returns of two tasks have no mean"
    # The best labels have 20 and 4: scores 0.5, 1, 1.5 and 0.25, 0.75, 0.5. One of six is cut at either end.
    assert row["normalised"] == pytest.approx((0.5 + 0.5 + 0.75 + 1.0) / 4)
    assert 0.25 < row["normalised_low"] < row["normalised"] < row["normalised_high"] < 1.5
    # mice-cpo wins 4.5 of 9 pairs on one task and all on the other.
    assert row_of(statistics, ALL_TASKS, "mice-cpo")["better_return"] == pytest.approx(0.75)


def test_labels_make_rows_and_a_base_has_the_same_limit(tmp_path):
    columns = {"return": [1.0, 2.0], "cost": [3.0, 4.0]}
    runs = [
        written_run(tmp_path, "a", columns, "mice-cpo", cost_limit=15.0),
        written_run(tmp_path, "b", columns, "mice-cpo", cost_limit=25.0),
        written_run(tmp_path, "c", columns, "cpo", cost_limit=25.0),
        written_run(tmp_path, "d", columns, "pid-lag", cost_limit=25.0),
    ]
    _, statistics = tabulate(runs, {"a": "limit 15", "b": "limit 25"})
    assert [(row["label"], row["versus"]) for row in statistics] == [
        ("limit 15", ""),
        ("limit 25", "cpo"),
        ("cpo", ""),
        ("pid-lag", ""),
    ]


def test_a_variant_is_compared_with_the_same_variant_of_its_base(tmp_path):
    """Not with whichever has the base's algorithm: another variant differs in more than the cost."""
    columns = {"return": [1.0, 2.0], "cost": [3.0, 4.0]}
    names = {"a": "mice-cpo", "b": "mice-cpo", "c": "cpo", "d": "cpo", "e": "pid-lag", "f": "mice-pid"}
    runs = [written_run(tmp_path, name, columns, algorithm) for name, algorithm in names.items()]
    labels = {"b": "mice-cpo, near lidar", "c": "cpo, near lidar", "e": "pid-lag, near lidar"}
    _, statistics = tabulate(runs, labels)
    assert {row["label"]: row["versus"] for row in statistics} == {
        "mice-cpo": "cpo",
        "mice-cpo, near lidar": "cpo, near lidar",
        "cpo, near lidar": "",
        "cpo": "",
        "pid-lag, near lidar": "",
        "mice-pid": "",
    }


def test_missing_seeds_are_counted(tmp_path):
    kept, broken = {"return": [1.0, 5.0], "cost": [3.0, 4.0]}, {"return": [1.0, 9.0], "cost": [30.0, 40.0]}
    runs = [
        written_run(tmp_path, "a", kept, iterations=4),
        written_run(tmp_path, "b", broken, seed=1),
        written_run(tmp_path, "c", {"return": []}, iterations=3, seed=2),
        written_run(tmp_path, "d", kept, "pid-lag"),
    ]
    measured, statistics = tabulate(runs)
    assert len(measured) == 4
    (main, better) = text_tables(statistics)
    first, alone = (dict(zip(main.header, row, strict=True)) for row in main.rows)
    assert first["runs"] == "2, 1 unfinished", "the third run has no iteration"
    assert first["return"] == "7.00 [5.00, 9.00]"
    assert first["feasible return"] == "3.00 (1 of 2)"
    assert alone["return"] == "5.00", "one seed has no interval"
    assert "true bias" not in main.header
    assert better.rows == []


def test_no_normalised_return_without_improvement(tmp_path):
    """Two tasks, on neither of which a label improves on the untrained return."""
    fallen = {"return": [1.0, 0.5], "cost": [3.0, 4.0]}
    runs = [written_run(tmp_path, f"{task}{seed}", fallen, env=task, seed=seed) for task in TASKS for seed in range(2)]
    row = row_of(tabulate(runs)[1], ALL_TASKS, "cpo")
    assert (row["normalised_seeds"], row["cost"]) == (0, 4)


def test_files(runs, tmp_path):
    write_table(tmp_path, runs)
    measured, statistics = tabulate(runs)
    for name, rows in (("measures.csv", measured), ("table.csv", statistics)):
        with (tmp_path / name).open() as file:
            written = list(csv.DictReader(file))
        assert len(written) == len(rows)
        for texts, row in zip(written, rows, strict=True):
            assert texts == {key: "" if value != value else str(value) for key, value in row.items()}
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert "| HazardField-v0 | cpo | 3 | 20.0 [10.0, 30.0] |" in "\n".join(lines)
    assert "| HazardField-v0 | mice-cpo | cpo | 0.50 [" in "\n".join(lines)
    assert not list(tmp_path.glob("*.tmp"))


def test_no_runs_are_an_empty_table(tmp_path):
    write_table(tmp_path, [])
    assert tabulate([]) == ([], [])
    assert (tmp_path / "table.csv").read_text() == "\n"
