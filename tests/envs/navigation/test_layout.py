"""The random stream, the sampler and the API that places things, against NumPy and against plain geometry."""

import math

import numba
import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation
from flashbulb.envs.navigation import layout as layouts
from flashbulb.envs.rng import mt_choice, mt_double, mt_seeded, mt_uniform, mt_word
from flashbulb.errors import UsageError
from tests.envs.navigation.golden import TASKS, trace

# as compiled code has them; to Python they are plain functions
choice, next_double, next_word, uniform, sample_layout = map(
    numba.njit, (mt_choice, mt_double, mt_word, mt_uniform, layouts.sample_layout)
)


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_stream_is_numpys(seed):
    theirs, ours = np.random.RandomState(seed), mt_seeded(seed)
    for k in range(700):  # beyond one twist
        low, high = -1.5 + 0.1 * k, 1.5 + 0.3 * k
        assert uniform(ours, low, high - low) == theirs.uniform(low, high)
        assert theirs.binomial(10, 1.0) == 10
        next_double(ours)
        assert choice(ours, 4) == theirs.choice(4)
        assert choice(ours, 6) == theirs.choice(6)
    assert next_word(ours) == theirs.randint(0, 2**32, dtype=np.uint32)


@pytest.mark.parametrize("env_id", [t for t in TASKS if "Circle" not in t])
def test_discarded_goal_is_the_originals(env_id):
    """The goal of the layout is drawn and then replaced; it still decides where the rest may lie."""
    env = Navigation(env_id, 1, seed=0, threads=1)
    for seed in range(5):
        objects = env.state.objects[0].copy()
        assert sample_layout(mt_seeded(seed), objects, env.rules)
        np.testing.assert_array_equal(objects[env.rules.goal, :2], trace(env_id)["static_goal_xy_discarded"][seed])


@pytest.mark.parametrize("task", ["Goal1", "Button1"])
def test_objects_keep_their_distance(task):
    env = Navigation(f"SafetyPoint{task}-v0", 100, seed=7, threads=1)
    env.reset()
    if task == "Button1":  # the marker stands on its button
        env.state.objects[:, env.rules.goal] = 100.0
    for xy in env.state.objects[:, :, :2]:
        for j in range(len(xy)):
            for k in range(j):
                assert math.dist(xy[j], xy[k]) >= env.rules.keepout[j] + env.rules.keepout[k]
    inner = np.abs(env.state.objects[:, :, :2]) <= 1.5 - env.rules.keepout[:, None]
    inner[:, env.rules.goal] = True
    assert inner.all()


@pytest.mark.parametrize("env_id", TASKS)
def test_layout_round_trip(env_id):
    """A layout read from one batch and put into another gives the same first observation."""
    source, target = (Navigation(env_id, 3, seed=s, threads=1) for s in (0, 50))
    first, _ = source.reset()
    target.reset()
    for _ in range(4):
        target.step(np.ones((3, 2)))
    placed = target.set_layout(source.layout())
    # The accelerometer is left out: a Car at rest touches the floor at distance 0 ± rounding.
    np.testing.assert_allclose(placed[:, 3:], first[:, 3:], rtol=0, atol=1e-12)
    actions = np.full((3, 2), 0.01)
    theirs, ours = source.step(actions), target.step(actions)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=1e-3)


def test_scenario_by_hand():
    """Environments can be placed one by one; the observation follows from the geometry."""
    env = Navigation("SafetyPointGoal1-v0", 3, seed=0, threads=1)
    before, _ = env.reset()
    obs = env.set_layout({"agent": [0.0, 0.0, 0.0], "goal": [1.5, 0.0]}, indices=np.array([1]))
    np.testing.assert_array_equal(obs[[0, 2]], before[[0, 2]])
    goal_lidar = obs[1, 12:28]
    assert goal_lidar[0] == goal_lidar[15] == 0.5  # straight ahead, on the edge of the first and last bin
    env.set_layout({"hazards": np.zeros((1, 8, 2)), "agent": np.array([[0.1, 0.0, 0.0], [0.3, 0, 0], [5, 5, 0]])})
    *_, info = env.step(np.zeros((3, 2)))
    np.testing.assert_array_equal(info["cost_hazards"], [1, 0, 0])


def test_a_yaw_not_given_stays():
    env = Navigation("SafetyCarGoal2-v0", 2, seed=0, threads=1)
    env.reset()
    for _ in range(10):
        env.step(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    before = env.layout()
    env.set_layout({"agent": [0.5, 0.5], "vases": np.full((10, 2), 1.0)})
    after = env.layout()
    np.testing.assert_allclose(after["agent"], np.c_[[0.5, 0.5], [0.5, 0.5], before["agent"][:, 2]], atol=1e-12)
    turn = after["vases"][..., 2] - before["vases"][..., 2]
    np.testing.assert_allclose(np.cos(turn), 1.0, atol=1e-12)
    np.testing.assert_array_equal(after["hazards"], before["hazards"])


def test_button_scenario_by_hand():
    env = Navigation("SafetyPointButton1-v0", 2, seed=0, threads=1)
    env.reset()
    corners = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    beside, ahead = [0.76, 1.0, 0.0], np.array([[1.0, 0.0]] * 2)  # the nose pushes against button 0
    env.set_layout({"buttons": corners, "gremlins": 9 + corners, "agent": beside, "goal_button": np.array([0, 2])})
    *_, info = env.step(ahead)
    np.testing.assert_array_equal(info["goal_met"], [True, False])
    costs = [env.step(ahead)[2][1] for _ in range(10)]
    assert costs == [0.0] * 9 + [1.0]  # the wrong button costs from the eleventh step on


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"vase": [0, 0]}, "'vase' cannot be placed"),
        ({"hazards": np.zeros((2, 3, 2))}, "hazards"),
        ({"agent": [np.nan, 0, 0]}, "agent"),
        ({"agent": 3.0}, "agent"),
        ({"goal_button": 1}, "goal_button"),
    ],
)
def test_impossible_layouts_are_refused(layout, message):
    env = Navigation("SafetyPointGoal1-v0", 2, seed=0, threads=1)
    env.reset()
    with pytest.raises(UsageError, match=message):
        env.set_layout(layout)


@pytest.mark.parametrize("chosen", [4, -1, 1.5, np.zeros(3, dtype=int)])
def test_impossible_buttons_are_refused(chosen):
    env = Navigation("SafetyPointButton0-v0", 2, seed=0, threads=1)
    env.reset()
    with pytest.raises(UsageError, match="goal_button"):
        env.set_layout({"goal_button": chosen})
