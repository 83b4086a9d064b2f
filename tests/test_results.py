"""The tables of the docs are those of the data, and what makes them computes what it says."""

import csv
import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from results import (
    add_runs,
    bias_table,
    docs,
    effects,
    figures,
    frontier,
    limit_table,
    matrix,
    phases,
    published,
    tables,
)

from tests.studies.written_run import written_run

STEPS = 2_000_000
TASK = "SafetyPointGoal1-v0"


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def run(label, seed, **measures):
    about = {"run": f"{label}{seed}", "task": TASK, "label": label, "algorithm": label.split(",")[0], "seed": seed}
    usual = {"cost_limit": 25.0, "return": 10.0, "cost": 20.0, "violation_rate": 0.5, "mean_excess": 1.0}
    return about | {"steps": float(STEPS)} | usual | measures


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """An empty directory of results, the only one."""
    tables._lines_by_run.cache_clear()
    monkeypatch.setattr(tables, "DIRECTORIES", (str(tmp_path / "first"), str(tmp_path / "second")))
    return tmp_path / "first"


def rows_printed(capsys):
    lines = capsys.readouterr().out.splitlines()
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("page", docs.pages(), ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_what_their_commands_print(page):
    text = page.read_text()
    assert docs.refreshed(text) == text, "make them again: python -m results.docs"


def test_a_table_in_a_page_is_replaced_and_the_rest_is_not(monkeypatch):
    monkeypatch.setattr(docs, "output_of", lambda module, arguments: f"| {module} | {arguments} |\n")
    table, figure = "<!-- python -m results.x 1 2 -->\n", "<!-- python -m results.figures c -->\n"
    before = f"a\n\n{table}\n| old |\n| rows |\n\nb\n{figure}\nc\n"
    assert docs.refreshed(before) == f"a\n\n{table}\n| results.x | 1 2 |\n\nb\n{figure}\nc\n"
    assert docs.refreshed(f"{table}\ntext\n") == f"{table}\n| results.x | 1 2 |\n\ntext\n"


def test_of_a_seed_that_two_directories_have_the_first_counts(directory):
    write(directory / "measures.csv", [run("cpo", 0, cost=1.0)])
    write(directory.parent / "second" / "measures.csv", [run("cpo", 0, cost=2.0), run("cpo", 1, cost=3.0)])
    (seeds,) = tables.gather().values()
    assert [row["cost"] for row in seeds.values()] == ["1.0", "3.0"]


def test_an_effect_is_the_difference_of_means_with_its_interval(directory, capsys):
    """Standard error sqrt(0.01/3 + 0.01/3), four degrees of freedom: 2.776 times that is 22.7 points."""
    base = [run("cpo", seed, violation_rate=rate) for seed, rate in enumerate((0.5, 0.6, 0.7))]
    other = [run("mice-cpo", seed, violation_rate=rate) for seed, rate in enumerate((0.2, 0.3, 0.4))]
    write(directory / "measures.csv", base + other)
    effects.main("cpo", "mice-cpo")
    (row,) = rows_printed(capsys)
    assert row["violations, %"] == "60.0 → 30.0 (-30.0 [-52.7, -7.3])"
    assert row["task"] == "PointGoal1, 2M"
    assert row["seeds"] == "3"


def test_two_seeds_have_no_interval(directory, capsys):
    write(directory / "measures.csv", [run(label, seed) for label in ("cpo", "mice-cpo") for seed in (0, 1)])
    effects.main("cpo", "mice-cpo")
    assert rows_printed(capsys)[0]["return"] == "10.0 → 10.0"


def test_the_mean_over_tasks_is_of_relative_changes(directory, capsys):
    """Violations halved, unchanged and doubled: +17 % on average."""
    rows = []
    for task, rate in (("SafetyPointGoal1-v0", 0.2), ("SafetyCarGoal1-v0", 0.4), ("SafetyAntVelocity-v1", 0.8)):
        rows += [run("cpo", 0, violation_rate=0.4) | {"task": task}]
        rows += [run("mice-cpo", 0, violation_rate=rate) | {"task": task}]
    write(directory / "measures.csv", rows)
    effects.main("cpo", "mice-cpo")
    *_, last = rows_printed(capsys)
    assert last["task"] == "mean of 3"
    assert last["violations, %"].startswith("+17% [")


def test_the_late_cost_is_of_the_second_half(directory, capsys):
    write(directory / "measures.csv", [run("cpo", 0, violation_rate=0.25, violation_rate_late=0.5)])
    curve = [{"run": "cpo0", "steps": n * STEPS / 4, "cost": n} for n in (1, 2, 3, 4)]
    write(directory / "curves_point.csv", curve + [row | {"run": "other", "cost": 99} for row in curve])
    limit_table.main("cpo")
    (row,) = rows_printed(capsys)
    assert (row["violations, all"], row["violations, late"], row["late cost"]) == ("25 %", "50 %", "3.5")


def test_a_phase_has_its_own_iterations(directory, capsys):
    """Costs of 21 to 40: of the first tenth of the run none is above 25, of the last two fifths all are."""
    write(directory / "measures.csv", [run("cpo", 0)])
    rows = [{"run": "cpo0", "steps": n * STEPS / 20, "cost": 20 + n, "return": n} for n in range(1, 21)]
    write(directory / "curves.csv", rows)
    phases.main("cpo", "PointGoal1:2e6")
    found = rows_printed(capsys)
    assert [row["million steps"] for row in found] == ["0 to 0.2", "0.2 to 0.6", "0.6 to 1.2", "1.2 to 2"]
    assert found[0]["`cpo`, n = 1"] == "0 %, 0.0, 1.5"
    assert found[-1]["`cpo`, n = 1"] == "100 %, 11.5, 16.5"


def test_a_range_stands_behind_the_mean():
    assert tables.spread(np.array([1.0, 2.0, np.nan, 6.0]), ".1f") == "3.0 [1.0, 6.0]"
    assert tables.spread(np.array([2.01, 2.02]), ".1f") == "2.0"


def test_a_matrix_has_the_mean_and_the_worst_of_each_task_and_algorithm(directory, capsys):
    rows = [run("cpo", 0, violation_rate=0.1, **{"return": 9.0}), run("cpo", 1, violation_rate=0.2)]
    write(directory / "measures.csv", [*rows, run("cup", 0) | {"task": "SafetyHopperVelocity-v1", "return": 1234.5}])
    matrix.main("cpo,cup", "PointGoal1:2e6", "Hopper:2e6")
    assert rows_printed(capsys) == [
        {"task": "PointGoal1, 2M", "`cpo`": "15 % (20), 9.5 (9.0), n = 2", "`cup`": "-"},
        {"task": "Hopper, 2M", "`cpo`": "-", "`cup`": "50 %, 1,234, n = 1"},
    ]
    matrix.main("cpo,cup", "PointGoal1:2e6", "Hopper:2e6", "--transpose")
    assert rows_printed(capsys)[1] == {"algorithm": "`cup`", "PointGoal1, 2M": "-", "Hopper, 2M": "50 %, 1,234, n = 1"}


def test_the_bias_is_that_of_the_second_half_of_each_run(directory, capsys):
    write(directory / "measures.csv", [run("cpo", 0), run("cpo", 1)])
    lines = []
    for name, late in (("cpo0", -1.0), ("cpo1", -3.0)):
        for steps, bias in ((STEPS / 2, 50.0), (STEPS * 3 / 4, late), (STEPS, late - 1)):
            line = {"run": name, "steps": steps, "critic_bias_rollout": bias, "true_cost_value": 4.0}
            lines.append(line | {f"critic_bias_rollout{s}": 0 for s in ("_risky", "_initial")})
    write(directory / "bias.csv", [line | {"true_cost_value_risky": 1, "true_cost_value_initial": 1} for line in lines])
    bias_table.main("cpo")
    (row,) = rows_printed(capsys)
    assert row["visited states"] == "-2.5 [-3.5, -1.5] (4.0)"
    assert (row["seeds"], row["R²"]) == ("2", "-")


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    saved, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (saved.append(self), save(self, *a, **k))[1])
    return saved


def test_curves_of_several_seeds_in_a_figure(directory, tmp_path, drawn):
    write(directory / "measures.csv", [run("cpo", seed) for seed in range(2)])
    lines = [
        {"run": f"cpo{seed}", "steps": n, "return": n + seed, "cost": 30.0} for seed in range(2) for n in (1, 2, 3)
    ]
    write(directory / "curves.csv", lines)
    figures.main("curves", str(tmp_path / "a.png"), "cpo,unknown", "PointGoal1:2e6")
    returns, cost = drawn[0].axes
    np.testing.assert_allclose(returns.lines[0].get_xydata(), [[1, 1.5], [2, 2.5], [3, 3.5]])
    assert [set(line.get_ydata()) for line in cost.lines if line.get_linestyle() == "--"] == [{25.0}]


def test_runs_are_added_with_their_commit_and_replace_those_of_the_same_name(directory, tmp_path):
    def study(cost):
        place = tmp_path / f"study_{cost}"
        run = written_run(
            place / "runs",
            "cpo_0",
            {"return": [1.0, 2.0], "cost": [cost, cost], "violation_rate": [1.0, 1.0]},
            env=TASK,
        )
        config = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps(config | {"commit": "0123456789abcdef"}))
        (place / "study.json").write_text(json.dumps({"labels": {"cpo_0": "mine", "not_begun": "mine"}}))
        return str(place)

    for cost in (30.0, 40.0):
        add_runs.main(str(directory), study(cost))
    (added,) = tables.rows_of(directory / "measures.csv")
    assert (added["run"], added["label"], added["commit"], float(added["cost"])) == ("cpo_0", "mine", "0123456", 40.0)
    curves = tables.rows_of(directory / "curves_point_goal1.csv")
    assert [(row["run"], row["iteration"], row["cost"]) for row in curves] == [
        ("cpo_0", "0", "40"),
        ("cpo_0", "1", "40"),
    ]


def test_of_an_evaluated_seed_the_first_directory_counts(directory, monkeypatch, capsys):
    monkeypatch.setattr(published, "DIRECTORIES", tables.DIRECTORIES)
    for place, cost in ((directory, 5.0), (directory.parent / "second", 9.0)):
        rows = [run("cpo", seed, steps=1e7) for seed in ((0, 2) if place == directory else (0, 1))]
        write(place / "measures.csv", rows)
        played = [{"run": row["run"], "return": 12.0, "cost": cost} for row in rows if row["seed"] < 2]
        write(place / "evaluations.csv", played)
    published.main()
    (row,) = rows_printed(capsys)
    assert row["seeds"] == "2", "the third was not evaluated"
    assert row["evaluation"] == "12.00 ± 0.00 / 7.00 ± 2.83"
    assert row["published"] == "20.46 ± 1.38 / 28.84 ± 7.76"


def test_bars_have_the_mean_over_seeds(directory, tmp_path, drawn):
    rates = (0.1, 0.2, 0.6)
    rows = [run("cpo", seed, violation_rate=rate, return_first=0.0) for seed, rate in enumerate(rates)]
    missing = {f"{name}": 0.0 for name in ("return_feasible", "return_area", "finished", "seconds")}
    write(directory / "measures.csv", [row | missing for row in rows])
    figures.main("bars", str(tmp_path / "a.png"), "cpo", "PointGoal1:2e6")
    _, violations, _ = drawn[0].axes
    assert [bar.get_height() for bar in violations.patches] == pytest.approx([0.3])


def test_return_against_cost_has_seeds_and_mean_and_names_who_is_far_above(directory, tmp_path, drawn):
    rows = [run("cpo", 0, cost=10.0), run("cpo", 1, cost=20.0), run("ppo", 0, cost=51.0)]
    write(directory / "measures.csv", [*rows, run("cpo, near lidar", 0, cost=1.0)])
    frontier.main(str(tmp_path / "a.png"), "PointGoal1:2e6")
    (axes,) = drawn[0].axes
    seeds, mean = axes.collections
    assert seeds.get_offsets().tolist() == [[10, 10], [20, 10]]
    assert mean.get_offsets().tolist() == [[15, 10]]
    assert [text.get_text() for text in axes.texts] == ["ppo: 10 at 51"]
