"""`make bench-learning`: its table is the mean and the standard deviation over seeds, with what is published beside."""

import csv

import pytest
from benchmarks.learning import CHEETAH, HOPPER, POINT, evaluate_runs, learning_table, published

import flashbulb


def row(task, label, seed, returns, cost):
    values = {"run": f"{label}{seed}", "task": task, "label": label, "seed": seed, "return": returns, "cost": cost}
    return {name: str(value) for name, value in (values | {"violation_rate": 0.25 * seed, "steps": 1e6}).items()}


def test_seeds_are_summed_up_and_published_results_are_beside_them():
    runs = [row(POINT, "cpo", 0, 10.0, 20.0), row(POINT, "mice-cpo", 0, 1.0, 2.0), row(POINT, "cpo", 1, 14.0, 20.0)]
    played = [{"run": "cpo0", "return": "12", "cost": "5"}, {"run": "cpo1", "return": "13", "cost": "7"}]
    _, _, first, second = learning_table(runs, played).splitlines()
    assert first == (
        "| PointGoal1 | cpo | 1,000,000 | 2 | 12.00 ± 2.83 / 20.00 ± 0.00 | 0.12 "
        "| 12.50 ± 0.71 / 6.00 ± 1.41 | 20.46 ± 1.38 / 28.84 ± 7.76 |"
    )
    assert second == "| PointGoal1 | mice-cpo | 1,000,000 | 1 | 1.00 / 2.00 | 0.00 | - | - |"


def test_every_published_cell_is_a_return_and_a_cost_with_their_deviations():
    assert len(published()) == 40
    for numbers in published().values():
        values = [float(number) for part in numbers.split(" / ") for number in part.split(" ± ")]
        assert len(values) == 4
    assert published()[CHEETAH, "trpo"] == "6490.76 ± 2507.18 / 734.26 ± 321.88"
    assert published()[HOPPER, "saute"] == "1650.91 ± 152.65 / 17.87 ± 1.33"


def test_a_policy_is_played_once(tmp_path, monkeypatch):
    settings = {"steps": 400, "steps_per_iteration": 200, "num_envs": 2, "verbose": False}
    flashbulb.train("ppo", "HazardField-v0", name="a", runs_dir=tmp_path / "runs", **settings)
    monkeypatch.setattr("benchmarks.learning.EPISODES", 3)
    (found,) = evaluate_runs(tmp_path, ["a"])
    expected = flashbulb.evaluate(tmp_path / "runs" / "a", episodes=3, deterministic=True)["deterministic"]
    assert float(found["return"]) == pytest.approx(expected["return"].mean, rel=1e-5)
    assert float(found["cost"]) == pytest.approx(expected["cost"].mean, rel=1e-5)
    monkeypatch.setattr(flashbulb, "evaluate", lambda *_, **__: pytest.fail("played again"))
    assert evaluate_runs(tmp_path, ["a"]) == [found]
    with (tmp_path / "evaluations.csv").open() as file:
        assert list(csv.DictReader(file)) == [found]
