"""Which runs are seeds of one experiment."""

import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.analysis.experiment import differences, distinct_labels

TASK = "HazardField-v0"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"seed": 3, "threads": 1, "physics": "rollout", "bias_every": 5, "name": "b"}, {}),
        ({"pid": {"proportional": 9.0}}, {}),  # CPO has no PID controller
        ({"steps": 200_000}, {"steps": (1_000_000, 200_000)}),  # the critics' step size decays over a run
        ({"trust_region": {"kl": 0.5}}, {"trust_region.kl": (0.01, 0.5)}),
    ],
)
def test_only_what_results_depend_on_makes_another_experiment(settings, expected):
    found, wanted = configure("cpo", TASK, steps=1_000_000), configure("cpo", TASK, **{"steps": 1_000_000} | settings)
    assert differences(found, wanted) == expected
    labels = distinct_labels([found, wanted])
    assert len(set(labels)) == 1 + bool(expected)


def test_labels_name_what_differs_among_runs_of_an_algorithm_on_a_task():
    runs = [
        configure("cpo", TASK, steps=1_000),
        configure("cpo", TASK, steps=2_000),
        configure("cpo", "SafetyPointGoal1-v0", steps=3_000),
        configure("mice-cpo", TASK, steps=4_000),
    ]
    assert distinct_labels(runs) == ["cpo, steps 1000", "cpo, steps 2000", "cpo", "mice-cpo"]
