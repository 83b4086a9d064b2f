"""The sentence that sums up a task, and what the brackets of a table are called."""

import math

import pytest

from flashbulb.analysis.run_table import ALL_TASKS
from flashbulb.report.tables import NUMBERS, _estimate, interval_words
from flashbulb.report.verdict import verdicts


def row(label, returns, cost, rate=0.2, spread=math.nan, runs=1, task="T"):
    ends = {"return_low": returns - spread, "return_high": returns + spread}
    return {"task": task, "label": label, "return": returns, "cost": cost, "violation_rate": rate, "runs": runs, **ends}


def test_a_probability_from_few_seeds_has_no_interval():
    """Of two or three seeds each; other measures have their range."""
    better = next(column for column in NUMBERS if column.name == "better_return")
    plain = next(column for column in NUMBERS if column.name == "return")
    for runs, tasks, intervals in ((2, 1, 0), (3, 1, 0), (4, 1, 1), (6, 2, 0), (8, 2, 1)):
        cells = {"runs": runs, "tasks": tasks, "better_return": 0.5, "better_return_low": 0.1}
        cells |= {"better_return_high": 0.9, "return": 1.0, "return_low": 0.0, "return_high": 2.0}
        assert _estimate(cells, better) == (["0.50", "[0.10, 0.90]"] if intervals else "0.50")
        assert _estimate(cells, plain) == ["1.00", "[0.00, 2.00]"]


def say(*rows, limit=25.0):
    ((task, sentence),) = verdicts(list(rows), {("T", r["label"]): limit for r in rows})
    assert task == "T"
    return sentence


def test_one_algorithm():
    assert say(row("cpo", 12.345, 24.0, 0.27)) == (
        "cpo keeps the limit of 25 at the end: return 12.35, cost 24; above it in 27 % of all iterations (1 seed)."
    )
    assert say(row("ppo", 30.0, 26.0, runs=2)).startswith("ppo is over the limit of 25 at the end: return 30, cost 26;")


def test_the_best_is_the_best_of_those_that_keep_the_limit():
    """A higher return over the limit does not count, and a cost at the limit is within it."""
    said = say(row("ppo", 99.0, 26.0), row("a", 5.0, 25.0), row("b", 7.0, 20.0, 0.1))
    assert said == (
        "2 of 3 algorithms keep the limit of 25 at the end; of these b has the highest mean return, not clearly "
        "(return 7, cost 20; next a, return 5, cost 25); above it in 10 % of all iterations (1 seed each)."
    )
    assert say(row("ppo", 99.0, 26.0), row("a", 5.0, 25.0)).startswith("Only a of 2 algorithms keeps the limit of 25")
    assert say(row("a", 1.0, 40.0), row("b", 2.0, 30.0)).startswith(
        "None of 2 algorithms keeps the limit of 25 at the end; b is nearest (return 2, cost 30)"
    )


@pytest.mark.parametrize(("spread", "words"), [(0.9, "has the highest return ("), (1.1, "not clearly (")])
def test_a_lead_is_clear_if_the_intervals_do_not_overlap(spread, words):
    said = say(row("a", 5.0, 1.0, spread=spread, runs=5), row("b", 7.0, 1.0, spread=spread, runs=6))
    assert words in said
    assert said.startswith("All 2 algorithms keep")
    assert said.endswith("(5 to 6 seeds each).")


def test_who_violates_least_is_named_too():
    said = say(row("a", 7.0, 20.0, 0.4), row("b", 9.0, 30.0, 0.3))
    assert "above it in 40 % of all iterations, b in 30 % (1 seed each)." in said
    assert "b in" not in say(row("a", 7.0, 20.0, 0.4), row("b", 9.0, 30.0, 0.4))


def test_each_algorithm_has_its_own_limit_and_unfinished_ones_are_left_out():
    rows = [row("a", 5.0, 10.0), row("b", 6.0, 10.0), row("c", 9.0, math.nan), row("a", 9.0, 1.0, task=ALL_TASKS)]
    ((_, sentence),) = verdicts(rows, {("T", "a"): 15.0, ("T", "b"): 5.0})
    assert sentence.startswith("Only a of 2 algorithms keeps the limit at the end")
    assert verdicts(rows[2:3], {}) == []


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([1, 1], "one seed each"),
        ([1, 2], "range of the seeds"),
        ([3], "range of"),
        ([4], "95 %"),
        ([2, 6], "and of two"),
    ],
)
def test_few_seeds_have_a_range_and_no_interval(seeds, words):
    assert words in interval_words(seeds)
    assert ("95 %" in interval_words(seeds)) == (max(seeds) > 3)
