"""`make bench-learning`: its table is the mean and the standard deviation over seeds, with what is published beside."""

from benchmarks.learning import learning_table


def row(task, label, seed, returns, cost):
    values = {"task": task, "label": label, "seed": seed, "return": returns, "cost": cost}
    return {name: str(value) for name, value in (values | {"violation_rate": 0.25 * seed, "steps": 1e6}).items()}


def test_seeds_are_summed_up_and_published_results_are_beside_them():
    point, mice = row("SafetyPointGoal1-v0", "cpo", 0, 10.0, 20.0), row("SafetyPointGoal1-v0", "mice-cpo", 0, 1.0, 2.0)
    _, _, first, second = learning_table([point, mice, row("SafetyPointGoal1-v0", "cpo", 1, 14.0, 20.0)]).splitlines()
    assert first == (
        "| SafetyPointGoal1-v0 | cpo | 1,000,000 | 2 | 12.00 ± 2.83 / 20.00 ± 0.00 | 0.12 "
        "| 20.46 ± 1.38 / 28.84 ± 7.76 |"
    )
    assert second == "| SafetyPointGoal1-v0 | mice-cpo | 1,000,000 | 1 | 1.00 / 2.00 | 0.00 | - |"
