"""Environments as objects: a class, a function, an instance, a batch; their arguments; and where their errors are."""

import gymnasium
import numpy as np
import pytest

import flashbulb
from flashbulb.cli.main import main
from flashbulb.cli.options import parse_train
from flashbulb.envs.env_objects import name_env
from flashbulb.errors import RunError, UsageError
from tests.algorithms.corridor import Corridor
from tests.envs import gym_examples

SMALL = {
    "num_envs": 2,
    "steps": 160,
    "steps_per_iteration": 80,
    "checkpoint_every": 1,
    "threads": 1,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "verbose": False,
}


class Slope(gymnasium.Env):
    """It has arguments, and fails where it is asked to."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    max_episode_steps = 20

    def __init__(self, edge=0.5, fail_at=10**9):
        self.edge, self.fail_at = edge, fail_at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.x, {}

    def step(self, action):
        self.t += 1
        self.x = np.clip(self.x + 0.2 * action, -10, 10).astype(np.float32)
        if self.t == self.fail_at:
            self.break_down()
        return self.x, float(self.x[0]), False, self.t >= 20, {"cost": float(self.x[0] > self.edge)}

    def break_down(self):
        raise ArithmeticError("the wheel fell off")


def test_a_class_that_can_be_imported_is_named_by_its_module():
    assert name_env(Slope) == f"{__name__}:Slope"
    assert name_env("HazardField-v0") == "HazardField-v0"
    assert name_env(lambda: Slope()) == "object:lambda"
    assert name_env(Slope()) == "object:Slope"
    with pytest.raises(UsageError, match="env: a int is not allowed"):
        name_env(3)


def test_all_forms_train_the_same_and_go_on(tmp_path):
    def local(edge=0.5):
        return Slope(edge)

    forms = {"class": Slope, "function": local, "instance": Slope(), "name": f"{__name__}:Slope"}
    runs = {
        name: flashbulb.train("ppo-lag", env, runs_dir=tmp_path, name=name, vectorise="serial", **SMALL)
        for name, env in forms.items()
    }
    for run in runs.values():
        np.testing.assert_array_equal(run.metrics["return"], runs["class"].metrics["return"])
    directory = runs["function"].directory
    measured = flashbulb.evaluate(directory, episodes=2, deterministic=True)["deterministic"]
    always = flashbulb.evaluate(directory, 2, True, env=local, env_kwargs={"edge": -100.0})["deterministic"]
    assert always["cost"].mean == 20 > measured["cost"].mean
    metrics = (directory / "metrics.csv").read_bytes()
    (directory / "checkpoints" / "000002.safetensors").unlink()
    flashbulb.resume(directory, env=local, verbose=False)
    assert (directory / "metrics.csv").read_bytes() == metrics

    from flashbulb.envs import env_objects

    env_objects._given.clear()
    with pytest.raises(UsageError, match=r"'object:local' was an object.*resume\(run, env=MyEnv\)"):
        flashbulb.resume(directory)


def test_a_batch_trains(tmp_path):
    result = flashbulb.train("ppo-lag", Corridor(4), runs_dir=tmp_path, **SMALL)
    assert result.summary["length"] == 40
    assert "Corridor" in result.directory.name


def test_arguments_reach_the_environment_in_this_and_in_other_processes(tmp_path):
    for how in ("processes", "serial"):
        env = flashbulb.make(f"{__name__}:Slope", 2, vectorise=how, env_kwargs={"edge": -100.0})
        env.reset(seed=0)
        assert env.step(np.zeros((2, 1)))[2].tolist() == [1.0, 1.0]
        env.close()
    with pytest.raises(UsageError, match=r"could not be made.*edgy"):
        flashbulb.make(f"{__name__}:Slope", 2, vectorise="serial", env_kwargs={"edgy": 1})
    config = parse_train(["cpo", "X-v0", "--env-kwargs.edge", "0.25", "--env-kwargs.kind=wide", "--seed", "3"])
    assert config.env_kwargs == {"edge": 0.25, "kind": "wide"}
    with pytest.raises(UsageError, match=r"env_kwargs: .* is not allowed; it must be a table of values that JSON"):
        flashbulb.train("cpo", Slope, env_kwargs={"f": print}, runs_dir=tmp_path)


def test_gymnasium_ids_take_arguments():
    findings = flashbulb.check("CartPole-v1", env_kwargs={"sutton_barto_reward": True})
    assert "no cost" in findings.problems[0]
    assert "unexpected keyword" in flashbulb.check("CartPole-v1", env_kwargs={"nonsense": 1}).problems[0]


def test_check_takes_objects_and_agrees_with_train(tmp_path):
    assert flashbulb.check(Slope).problems == []
    assert flashbulb.check(Slope(), env_kwargs={}).problems == []
    assert "ArithmeticError" in flashbulb.check(Slope, env_kwargs={"fail_at": 3}).problems[0]
    negative = flashbulb.check(gym_examples.broken_negative)
    assert "A cost is negative (-0.5)" in negative.problems[0]
    with pytest.raises(UsageError, match="a cost is negative"):
        flashbulb.train("cpo", gym_examples.broken_negative, runs_dir=tmp_path, vectorise="serial", **SMALL)
    unbounded = gym_examples.broken_infinite_bounds
    assert flashbulb.check(unbounded, 200).problems == []
    flashbulb.train("cpo", unbounded, runs_dir=tmp_path, vectorise="serial", **SMALL)


@pytest.mark.parametrize("how", ["serial", "processes"])
def test_an_error_shows_the_frames_of_the_user(how, tmp_path, capsys):
    with pytest.raises(RunError, match="ArithmeticError: the wheel fell off") as raised:
        flashbulb.train(
            "cpo", Slope, env_kwargs={"fail_at": 3}, vectorise=how, runs_dir=tmp_path, name="python", **SMALL
        )
    assert not (tmp_path / "python").exists(), "a run without an iteration does not keep its name"
    (note,) = raised.value.__cause__.__notes__
    assert "in step" in note
    assert "in break_down" in note
    assert "gym_single.py" not in note
    options = ["--env-kwargs.fail-at", "3", "--vectorise", how, "--runs-dir", str(tmp_path), "--name", "shell"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "cpo", f"{__name__}:Slope", "--num-envs", "2", "--threads", "1", *options])
    assert stop.value.code == 1
    sentence, *frames = capsys.readouterr().err.splitlines()
    assert sentence.startswith("flashbulb: ")
    assert any("break_down" in line for line in frames)


def test_navigation_levels_take_parameters():
    plain, same = (flashbulb.make("SafetyPointGoal1-v0", 2, env_kwargs=kwargs) for kwargs in ({}, {"hazards": 8}))
    many = flashbulb.make("SafetyPointGoal1-v0", 2, env_kwargs={"hazards": 12, "extent": 2.5, "episode_steps": 7})
    first, again = plain.reset(seed=3)[0], same.reset(seed=3)[0]
    np.testing.assert_array_equal(first, again)
    assert many.reset(seed=3)[0].shape == first.shape
    assert many.layout()["hazards"].shape[1] == 12
    assert np.abs(many.layout()["hazards"][..., :2]).max() <= 2.5
    for _ in range(7):
        *_, truncated, _ = many.step(np.zeros((2, 2)))
    assert truncated.all()
    for kwargs, says in (
        ({"hazards": 0}, "env_kwargs.hazards: 0 is not allowed"),
        ({"gremlins": 2}, "this task has no gremlins"),
        ({"colour": 1}, "'colour' is not allowed; SafetyPointGoal1-v0 takes hazards"),
        ({"extent": 99}, "extent: 99 is not allowed"),
    ):
        with pytest.raises(UsageError, match=says):
            flashbulb.make("SafetyPointGoal1-v0", 2, env_kwargs=kwargs)
    with pytest.raises(UsageError, match="HazardField-v0 has no parameters"):
        flashbulb.make("HazardField-v0", env_kwargs={"hazards": 3})
