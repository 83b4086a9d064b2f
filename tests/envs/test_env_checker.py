"""`flashbulb check` finds each mistake in an environment that has it, and nothing in those that have none."""

import pytest

from flashbulb.cli.main import run
from flashbulb.envs import env_checker as checking
from flashbulb.envs.env_checker import check
from flashbulb.envs.registry import single
from flashbulb.errors import UsageError

EXAMPLES = "tests.envs.gym_examples"


@pytest.mark.parametrize("name", ["make_walk", "make_six", "make_buttons", "StrangeWalk-v0"])
def test_nothing_is_wrong_with_good_ones(name):
    assert check(f"{EXAMPLES}:{name}").problems == []


def test_nothing_is_wrong_with_ours():
    assert check(single("HazardField-v0")).problems == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("no_cost", 'no cost; put it into info["cost"]'),
        ("two_costs", "one number, for one constraint"),
        ("negative", "negative (-0.5)"),
        ("nan_cost", "cost is not finite"),
        ("nan_reward", "reward is not finite"),
        ("outside", "outside the observation space (entry 1, bounds -10 to 10)"),
        ("nan_observation", "not finite (entry 0)"),
        ("shape", "shape (2,)"),
        ("double", "float64, but the observation space says float32"),
        ("endless", "Truncation is never reported: in 2,000 steps"),
        ("time_as_termination", "all episodes end after 20 steps"),
        ("unseeded", "The same seed and actions lead elsewhere"),
        ("seed_refused", "reset cannot be seeded"),
        ("reset_without_info", "(observation, info)"),
        ("dictionary", "observation space is Dict"),
        ("multi_binary", "action space is MultiBinary"),
        ("four", "step returns 4 values"),
        ("raises", "ZeroDivisionError: the wheel fell off"),
    ],
)
def test_each_mistake_is_explained_and_no_other_is_claimed(fault, says):
    problems = check(f"{EXAMPLES}:broken_{fault}", max_steps=2000).problems
    assert len(problems) == 1, problems
    assert says in problems[0]
    assert "\n" not in problems[0]


def test_it_goes_on_after_the_first_mistake(monkeypatch):
    from tests.envs import gym_examples

    class Doubly(gym_examples.Faulty):
        def step(self, action):
            obs, _, terminated, truncated, _ = super().step(action)
            return obs, float("nan"), terminated, truncated, {}

    monkeypatch.setattr(gym_examples, "doubly", lambda: Doubly("outside"), raising=False)
    problems = check(f"{EXAMPLES}:doubly", max_steps=300).problems
    assert len(problems) == 4  # no cost, outside, reward, no time limit
    assert [p for p in problems if "reward is not finite" in p]


def test_what_is_carried_over_between_episodes_is_found(monkeypatch):
    from tests.envs import gym_examples

    class Tired(gym_examples.SixTuple):
        episodes = 0

        def reset(self, *, seed=None, options=None):
            self.episodes += 1
            return super().reset(seed=seed)

        def step(self, action):
            obs, reward, *rest = super().step(action)
            return obs, reward / self.episodes, *rest

    monkeypatch.setattr(gym_examples, "tired", Tired, raising=False)
    (problem,) = check(f"{EXAMPLES}:tired").problems
    assert "when it is played again" in problem


def test_unbounded_actions_get_a_note():
    findings = check(f"{EXAMPLES}:broken_infinite_bounds", max_steps=200)
    assert findings.problems == []
    assert "action bounds are infinite" in findings.notes[0]


def test_a_costless_environment_gets_a_note(monkeypatch):
    monkeypatch.setattr(checking, "EPISODES", 1)
    findings = check(f"{EXAMPLES}:broken_nothing")
    assert findings.problems == []
    assert "None of 30 random steps cost anything" in findings.notes[0]


def test_a_name_that_leads_nowhere_is_a_problem():
    assert "cannot be imported" in check("no_such_module:make").problems[0]


def test_on_the_command_line(capsys):

    assert run(["check", f"{EXAMPLES}:make_six"]) == 0
    assert f"is ready to train: flashbulb train mice-cpo {EXAMPLES}:make_six" in capsys.readouterr().out
    assert run(["check", f"{EXAMPLES}:broken_negative"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith("is not ready to train:")
    assert lines[-1].startswith("  1. A cost is negative")
    with pytest.raises(UsageError, match="SafetyPointGoal1-v0"):
        run(["check", "SafetyPointGaol1-v0"])
    with pytest.raises(UsageError, match="steps: 0"):
        run(["check", "HazardField-v0", "--steps", "0"])
