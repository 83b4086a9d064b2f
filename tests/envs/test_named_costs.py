"""Several costs by name: from Gymnasium environments, from our tasks, and as the costs of a batch."""

import gymnasium
import numpy as np
import pytest

import flashbulb
from flashbulb.envs.base import CostVectorEnv
from flashbulb.envs.named_costs import NamedCosts, cost_axis, with_named_costs
from flashbulb.errors import UsageError
from tests.algorithms.corridor import Corridor
from tests.algorithms.two_corridors import TwoCorridors

EXAMPLES = "tests.envs.gym_examples"


def test_the_costs_of_a_batch_are_those_with_the_names_in_their_order():
    env, plain = NamedCosts(TwoCorridors(2), ("up", "right")), TwoCorridors(2)
    assert isinstance(env, CostVectorEnv)
    assert (cost_axis(env), cost_axis(plain)) == ((2,), ())
    env.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(7):  # beyond 0.5 after six steps: the first walker to the right, the second upwards
        action = np.array([[1.0, 0.0], [0.0, 1.0]])
        cost, total = env.step(action)[2], plain.step(action)[2]
    np.testing.assert_array_equal(cost, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(total, [1, 1])
    assert with_named_costs(plain, ()) is plain


def test_a_snapshot_is_that_of_the_task():
    env = NamedCosts(TwoCorridors(3), ("up",))
    env.reset(seed=0)
    env.step(np.full((3, 2), 0.7))
    state, seen = env.get_state(), env.observe()
    env.step(np.full((3, 2), -0.7))
    env.set_state(state)
    np.testing.assert_array_equal(env.observe(), seen)


@pytest.mark.parametrize(
    ("env", "names", "says"),
    [
        (TwoCorridors(2), ("left",), "no cost 'left'; TwoCorridors has right, up"),
        (Corridor(2), ("right",), "Corridor reports one cost without a name; give one number"),
    ],
)
def test_unknown_names_are_refused_in_one_sentence(env, names, says):
    with pytest.raises(UsageError, match=says) as refusal:
        NamedCosts(env, names)
    assert str(refusal.value).startswith("cost_limit: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("vectorise", ["processes", "serial"])
def test_a_gymnasium_environment_reports_them_in_its_info(vectorise):
    made = flashbulb.make(f"{EXAMPLES}:make_two_costs", 3, seed=0, threads=2, vectorise=vectorise)
    env = NamedCosts(made, ("far", "above"))
    env.reset(seed=0)
    seen = []
    for _ in range(40):
        _, _, cost, _, _, info = env.step(np.tile([[1.0, 2.0]], (3, 1)))
        np.testing.assert_array_equal(cost, np.c_[info["costs"]["far"], info["costs"]["above"]])
        seen.append(cost)
    env.close()
    # The second axis moves twice as fast and begins to cost earlier; without a number of its own the total is the sum.
    assert 0 < np.sum(seen, axis=(0, 1))[0] < np.sum(seen, axis=(0, 1))[1]


def test_the_total_of_named_costs_without_a_number_of_their_own_is_their_sum():
    env = flashbulb.make(f"{EXAMPLES}:make_two_costs", 2, seed=0, vectorise="serial")
    env.reset(seed=0)
    for _ in range(20):
        _, _, cost, _, _, info = env.step(np.tile([[1.0, 2.0]], (2, 1)))
        np.testing.assert_array_equal(cost, info["costs"]["far"] + info["costs"]["above"])
    env.close()


def test_a_cost_that_is_missing_in_a_step_is_an_error_and_not_a_zero():
    env = flashbulb.make(f"{EXAMPLES}:make_now_and_then", 2, seed=0, vectorise="serial")
    env.cost_names = ("far", "above")
    named = NamedCosts(env, ("above",))
    named.reset(seed=0)
    with pytest.raises(UsageError, match=r"no number for the cost 'above'; .* every step, 0 where it is safe"):
        _ = [named.step(np.zeros((2, 2))) for _ in range(5)]
    env.close()


def test_check_names_them():
    notes = flashbulb.check(f"{EXAMPLES}:make_two_costs", steps=200).notes
    assert any("far, above" in note for note in notes)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("SafetyPointGoal1-v0", ("hazards",)),
        ("SafetyPointGoal2-v0", ("hazards", "vases_contact", "vases_velocity", "vases")),
        ("SafetyPointCircle1-v0", ("out_of_boundary",)),
        ("SafetyPointButton1-v0", ("buttons", "hazards", "gremlins")),
    ],
)
def test_our_tasks_offer_the_parts_of_their_cost(task, names):
    env = flashbulb.make(task, 8, seed=3)
    assert env.cost_names == names
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    paid = np.zeros(len(names))
    for _ in range(250):
        actions = np.tile(rng.uniform([-0.4, -1.0], [1.6, 1.0]), (8, 1))
        _, _, cost, _, _, info = env.step(actions)
        parts = np.stack([info["costs"][name] for name in names])
        np.testing.assert_array_equal(cost, parts.max(axis=0))  # the total as ever: 1 if any part costs
        for name in names:
            if name != "vases":
                np.testing.assert_array_equal(info["costs"][name], info[f"cost_{name}"])
        paid += parts.sum(axis=1)
    env.close()
    assert paid.any()
    if "vases" in names:
        assert paid[3] >= max(paid[1], paid[2])


def test_a_single_task_of_ours_reports_numbers():
    env = gymnasium.make("flashbulb/SafetyPointGoal2-v0")
    env.reset(seed=0)
    info = env.step(np.zeros(2))[4]
    assert info["costs"] == {"hazards": 0.0, "vases_contact": 0.0, "vases_velocity": 0.0, "vases": 0.0}
    env.close()
