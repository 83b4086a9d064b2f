"""One limit or several with names: which cost leads, what names are allowed, and how limits are given."""

import itertools

import numpy as np
import pytest

from flashbulb.algorithms.registry import ALGORITHMS, configure, get_algorithm
from flashbulb.cli.options import parse_train
from flashbulb.config import to_dict
from flashbulb.cost_limits import leading_column, leading_cost, limit_columns, limit_text
from flashbulb.errors import UsageError
from flashbulb.validation import rebuild

TWO = {"hazards": 25.0, "vases": 5.0}


def test_the_leading_cost_is_the_one_that_is_furthest_over_its_limit_in_relation_to_it():
    costs = np.array([[30.0, 5.5], [26.0, 10.0], [20.0, 4.5], [0.0, 0.0]])  # 20 and 10 %, 4 and 100 %, -20 and -10 %
    cost, limit = leading_cost(costs, TWO)
    np.testing.assert_array_equal(cost, [30.0, 10.0, 4.5, 0.0])
    np.testing.assert_array_equal(limit[:3], [25.0, 5.0, 5.0])
    assert leading_cost(7.0, 25.0) == (7.0, 25.0)


@pytest.mark.parametrize("limits", [{"a": 3.0, "b": 0.0}, {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 4.0}])
def test_it_is_over_its_limit_exactly_if_any_is(limits):
    for costs in itertools.product([0.0, 0.5, 1.0, 3.0, 3.1, 5.0], repeat=2):
        cost, limit = leading_cost(np.array(costs), limits)
        assert (cost > limit) == any(c > d for c, d in zip(costs, limits.values(), strict=True))


def test_of_rows_the_column_whose_mean_leads():
    costs = np.array([[100.0, 6.0], [0.0, 6.0], [0.0, 6.0]])  # means 33 (33 % over) and 6 (20 %)
    np.testing.assert_array_equal(leading_column(costs, TWO), costs[:, 0])
    np.testing.assert_array_equal(leading_column(costs[1:], TWO), [6.0, 6.0])


def test_columns_and_text():
    assert limit_columns(25.0) == {"cost": 25.0}
    assert limit_columns(TWO) == {"cost_hazards": 25.0, "cost_vases": 5.0}
    assert (limit_text(25.0), limit_text(TWO)) == ("25", "hazards 25, vases 5")


def test_names_are_in_order_and_a_configuration_survives_json():
    config = configure("trpo-pid", "E", cost_limit={"vases": 5, "hazards": 25})
    assert config.cost_names == ("hazards", "vases")
    assert config.cost_limit == TWO
    again = rebuild(to_dict(config))
    assert (again, again.cost_names) == (config, config.cost_names)
    assert configure("cpo", "E").cost_names == ()


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({}, "a limit for each"),
        ({"a": -1}, r"cost_limit\.a: -1.0 is not allowed"),
        ({"a": float("nan")}, r"cost_limit\.a: nan"),
        ({"a": "many"}, "a number or a table of names and numbers"),
        ({1: 5.0}, "a number or a table"),
        ({"a b": 5.0}, "'a b' is not allowed as the name of a cost"),
        ({"rate": 5.0}, "'rate' is not allowed"),  # the column cost_rate is another
        ({"z_a": 5.0}, "'z_a' is not allowed"),
        ({"../a": 5.0}, "is not allowed as the name"),
    ],
)
def test_other_limits_are_refused_in_one_sentence(limit, says):
    with pytest.raises(UsageError, match=says) as refusal:
        configure("trpo-pid", "E", cost_limit=limit)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("settings", [{"bias_every": 5}, {"memory": {"offline": "x.npz"}}])
def test_what_is_for_one_cost_is_refused_with_several(settings):
    with pytest.raises(UsageError, match="several costs"):
        configure("mice-pid", "E", cost_limit=TWO, **settings)


CANNOT = ["cpo", "c-trpo", "sb-trpo", "pcpo", "p3o", "cup", "saute", "simmer-pid", "ppo-early-end", "mice-cpo"]


@pytest.mark.parametrize("name", CANNOT)
def test_algorithms_that_cannot_name_those_that_can(name):
    with pytest.raises(UsageError, match=f"^cost_limit: {name} keeps one limit only") as refusal:
        configure(name, "E", cost_limit=TWO)
    able = str(refusal.value).partition("(")[2].partition(", and")[0].split(", ")
    assert {"trpo-pid", "pid-lag", "ppo-lag", "trpo-lag", "crpo", "mice-pid", "mice-salient"} <= set(able)
    for other in able:
        assert configure(other, "E", cost_limit=TWO).cost_names == ("hazards", "vases")
        assert get_algorithm(other).uses_cost_critic  # one that ignores cost keeps no limit
    assert set(CANNOT).isdisjoint(able)
    assert set(able) <= set(ALGORITHMS)


def test_on_the_command_line_each_has_a_name():
    arguments = ["trpo-pid", "TASK", "--cost-limit", "vases=5", "--seed", "3", "--cost-limit=hazards=25"]
    config = parse_train(arguments)
    assert (config.cost_limit, config.seed) == (TWO, 3)
    assert parse_train(["trpo-pid", "TASK", "--cost-limit", "7"]).cost_limit == 7.0
    assert parse_train(["trpo-pid", "TASK"]).cost_limit == 25.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--cost-limit", "a=1", "--cost-limit", "2"], "and not both"),
        (["--cost-limit", "a=many"], "--cost-limit a=NUMBER"),
        (["--cost-limit", "a="], "--cost-limit a=NUMBER"),
        (["--cost-limit", "=5"], "'' is not allowed as the name"),
        (["--cost-limit", "a=-5"], "cost_limit.a: -5.0"),
        (["--cost-limit"], "cost-limit"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(arguments, says):
    with pytest.raises(UsageError, match=says) as refusal:
        parse_train(["trpo-pid", "TASK", *arguments])
    assert "\n" not in str(refusal.value)


def test_a_file_has_a_table(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("algorithm: crpo\nenv: TASK\ncost_limit: {vases: 5, hazards: 2.5e1}\n")
    assert parse_train(["--config", str(path)]).cost_limit == TWO
