"""The table of algorithms, how names compose, and that each algorithm learns."""

import io

import jax
import numpy as np
import pytest
from gymnasium import spaces
from rich.console import Console

from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import ALGORITHMS, configure, get_algorithm
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.training.loop import train
from tests.algorithms.corridor import STEPS, Corridor, best_return

PAPER = {
    *("cpo", "pid-lag", "cup", "saute", "simmer-pid", "pid-lag-twin", "mice-cpo", "mice-pid"),
    *("constant-3-cpo", "constant-5-cpo", "constant-15-cpo", "mice-cpo-no-projection", "ppo-lag", "ppo", "trpo"),
}
CONSTANTS = {"constant-3-cpo": 3, "constant-5-cpo": 5, "constant-15-cpo": 15}


def test_the_table_has_every_algorithm_and_each_configures():
    assert set(ALGORITHMS) >= PAPER
    for name in ALGORITHMS:
        assert isinstance(configure(name, "HazardField-v0"), Config)


def test_parts():
    parts = {
        name: (r.actor, r.multiplier, r.cost_stream, r.cost_critics, r.augmentation) for name, r in ALGORITHMS.items()
    }
    assert parts["cpo"] == ("cpo", "none", "extrinsic", 1, "none")
    assert parts["mice-cpo"] == ("cpo", "none", "memory", 1, "none")
    assert parts["mice-pid"] == ("ppo", "pid", "memory", 1, "none")
    assert parts["pid-lag-twin"] == ("ppo", "pid", "extrinsic", 2, "none")
    assert parts["cup"] == ("cup", "ascent", "extrinsic", 1, "none")
    assert parts["simmer-pid"] == ("ppo", "none", "extrinsic", 1, "simmer")
    assert parts["constant-3-cpo"] == ("cpo", "none", "constant", 1, "none")


def test_names_compose():
    cup, mice_cup = get_algorithm("cup"), get_algorithm("mice-cup")
    assert (mice_cup.actor, mice_cup.multiplier, mice_cup.cost_stream) == (cup.actor, cup.multiplier, "memory")
    assert get_algorithm("mice-pid-lag-twin").cost_critics == 2
    assert get_algorithm("td3-pid") == get_algorithm("pid-lag-twin")  # the name of earlier versions
    assert get_algorithm("mice-pid-lag") == ALGORITHMS["mice-pid"]
    assert configure("constant-2.5-ppo-lag", "E").constant.value == 2.5
    assert configure("mice-pid-no-projection", "E").memory.embedding == 0
    assert configure("mice-cpo-no-projection", "E", memory={"neighbours": 3}).memory.embedding == 0
    authors = configure("mice-pid-authors", "E")
    assert (authors.memory.kernel, authors.memory.recall, authors.memory.queue) == ("linear", "causal", 100)
    assert (authors.balance.factor, authors.balance.initial, authors.cost_normalise) == ("state", 5.0, "standardise")
    salient = configure("mice-pid-salient", "E")
    assert (salient.memory.view, salient.memory.xi, salient.balance.initial) == ("salient", 0.1, 0.6)
    assert configure("mice-cpo", "E").memory.embedding == 8


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cpoo", "unknown algorithm 'cpoo'"),
        ("mice-cpoo", "unknown algorithm 'mice-cpoo'"),
        ("mice-ppo", "no cost critic"),
        ("mice-saute", "no cost critic"),
        ("constant-3-trpo", "no cost critic"),
        ("mice-mice-cpo", "already"),
        ("mice-constant-3-cpo", "already"),
        ("constant-x-cpo", "unknown algorithm"),
        ("cpo-no-projection", "projection"),
        ("cpo-salient", "needs a mice-X"),
        ("mice-cpo-salient-salient", "once"),
        ("", "unknown algorithm"),
    ],
)
def test_what_does_not_compose_is_refused_in_one_sentence(name, says):
    with pytest.raises(UsageError, match=says) as refusal:
        get_algorithm(name)
    assert "\n" not in str(refusal.value)


# Learning. The corridor's costs are a fifth of what gains per unit of cost are meant for, so gains are five times
# as large; steps are large because runs are short.
LIMIT, TOLERANCE = 5.0, 1.0
FAST = {
    "steps_per_iteration": 1600,
    "num_envs": 20,
    "checkpoint_every": 1000,
    "policy": {"hidden": (32,), "initial_log_std": -0.5},
    "critic": {"hidden": (32,), "learning_rate": 3e-3, "passes": 4},
    "proximal": {"learning_rate": 3e-3, "passes": 10},
    # Per step, c is consistent with b, and CPO settles at its limit for every seed tried. Per episode it swings between
    # TRPO's step and recovery, for some seeds to the end.
    "trust_region": {"kl": 0.03, "scale": "step"},
    "pid": {"proportional": 0.5, "integral": 0.05, "derivative": 0.05},
    "ascent": {"learning_rate": 0.175},
    "balance": {"initial": 1.0, "rate": 0.0},
}


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *arguments, **options: None)


def run(name, tmp_path, iterations=40, discrete=False, **settings):
    config = configure(
        name, "Corridor", **(FAST | {"steps": 1600 * iterations, "runs_dir": tmp_path, "cost_limit": LIMIT} | settings)
    )
    return train(config, Console(file=io.StringIO()), env=Corridor(20, discrete)).metrics


def tail(metrics, column):
    return metrics[column][-8:].mean()


@pytest.mark.parametrize("name", ["ppo", "trpo"])
def test_unconstrained_algorithms_find_the_best_return_and_ignore_the_cost(name, tmp_path):
    metrics = run(name, tmp_path)
    assert tail(metrics, "return") > 0.97 * best_return(STEPS)
    assert tail(metrics, "cost") > 6 * LIMIT


LEARNERS = sorted(set(ALGORITHMS) - {"ppo", "trpo", "ppo-early-end"} - set(CONSTANTS))


@pytest.mark.parametrize(
    "name", [name if name in PAPER else pytest.param(name, marks=pytest.mark.slow) for name in LEARNERS]
)
def test_constrained_algorithms_learn_to_earn_within_the_limit(name, tmp_path):
    # A factor of 1 keeps CUP far below the limit on two of four seeds; at 0.3 it learns on three of four.
    settings = {"balance": {"initial": 0.3, "rate": 0.0}} if name == "mice-cup" else {}
    if "cup" in name:  # Adam's multiplier takes hundreds of iterations to settle
        settings["ascent"] = {"rule": "gradient", "learning_rate": 0.175, "maximum": 100.0}
    metrics = run(name, tmp_path, **settings)
    assert metrics["return"][0] < 5
    assert tail(metrics, "return") > 0.6 * best_return(int(LIMIT))
    assert tail(metrics, "return") < 1.02 * best_return(int(LIMIT + TOLERANCE))
    assert tail(metrics, "cost") < LIMIT + TOLERANCE
    if name in ("mice-cpo", "mice-pid"):  # their base learners come to rest at the limit, and so would they without c^I
        assert tail(metrics, "cost") < LIMIT / 2


def test_the_salient_view_learns_too(tmp_path):
    # Its kernel is wide, and the corridor is short: every state of it is near an unsafe one.
    metrics = run("mice-cpo-salient", tmp_path, balance={"initial": 0.05, "rate": 0.0})
    assert metrics["intrinsic_return"].max() > 0.5
    assert tail(metrics, "return") > 0.6 * best_return(int(LIMIT))
    assert tail(metrics, "cost") < LIMIT + TOLERANCE


@pytest.mark.parametrize(("name", "constant"), CONSTANTS.items())
def test_a_constant_in_the_cost_value_takes_as_much_off_the_limit(name, constant, tmp_path):
    metrics = run(name, tmp_path, cost_limit=20.0)
    assert metrics["return"][0] < 5
    assert tail(metrics, "return") > 0.6 * best_return(20 - constant)
    assert tail(metrics, "cost") < 20 - constant + TOLERANCE
    np.testing.assert_allclose(metrics["intrinsic_return"], constant, rtol=1e-4)
    np.testing.assert_allclose(metrics["constraint"], metrics["cost"] + constant - 20, atol=1e-4)


def test_discrete_actions(tmp_path):
    metrics = run("mice-pid", tmp_path, discrete=True)
    assert tail(metrics, "return") > 0.6 * best_return(int(LIMIT))
    assert tail(metrics, "cost") < LIMIT + TOLERANCE


@pytest.mark.parametrize(("base", "mice"), [("cpo", "mice-cpo"), ("pid-lag", "mice-pid")])
def test_a_factor_of_zero_is_the_base_learner_to_the_last_bit(base, mice, tmp_path):
    off = {"balance": {"initial": 0.0, "rate": 0.0}}
    ours, theirs = run(mice, tmp_path, 6, **off), run(base, tmp_path, 6)
    assert ours["memory_size"].sum() > 0
    for column in set(ours) - {"memory_size", "intrinsic_cost", "anticipation"}:
        np.testing.assert_array_equal(ours[column], theirs[column], err_msg=column)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_margin_is_the_share_of_the_intrinsic_return_that_the_constraint_sees(margin, tmp_path):
    metrics = run("mice-cpo", tmp_path, 4, balance={"initial": 1.0, "rate": 0.0, "margin": margin})
    assert metrics["intrinsic_return"].max() > 0
    seen = metrics["cost"] + margin * metrics["intrinsic_return"] - LIMIT
    np.testing.assert_allclose(metrics["constraint"], seen, atol=1e-4)


class TwoCosts(Corridor):
    def step(self, actions):
        obs, reward, cost, *rest = super().step(actions)
        return obs, reward, np.stack([cost, cost], axis=1), *rest


def test_more_than_one_constraint_is_refused_in_one_sentence(tmp_path):
    config = configure("cpo", "Corridor", **FAST, runs_dir=tmp_path, steps=1600)
    with pytest.raises(UsageError, match=r"costs of shape \(20, 2\).*one constraint"):
        train(config, Console(file=io.StringIO()), env=TwoCosts(20))


@pytest.mark.parametrize("name", ["cpo", "saute"])
@pytest.mark.parametrize(
    "space", [spaces.Dict({"x": spaces.Box(-1, 1, (2,))}), spaces.Box(0, 255, (8, 8, 3), np.uint8)]
)
def test_dictionaries_and_images_are_refused_in_one_sentence(name, space, tmp_path):
    env = Corridor(20)
    env.single_observation_space = space
    with pytest.raises(UsageError, match="they must be a Box of one dimension") as refusal:
        train(configure(name, "Corridor", runs_dir=tmp_path), env=env)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["cpo", "pid-lag-twin", "cup", "simmer-pid"])
def test_every_leaf_of_the_learner_is_an_array(name):
    """So that a checkpoint covers it, and a resumed run goes on exactly."""
    env = Corridor(2)
    policy = policy_for(env.single_observation_space, env.single_action_space)
    config = configure(name, "E", policy={"hidden": (2,)}, critic={"hidden": (2,)})
    state = Learner(policy, get_algorithm(name), config).init(3, jax.random.key(0))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))
