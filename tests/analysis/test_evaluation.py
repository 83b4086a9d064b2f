"""Evaluation: exactly the episodes promised, of seeds that training never saw, with honest intervals."""

import json

import numpy as np
import pytest

import flashbulb
from flashbulb.analysis import evaluation, statistics
from flashbulb.analysis.evaluation import (
    EpisodeResults,
    episode_statistics,
    evaluate,
    evaluation_env,
    evaluation_seed,
    run_episodes,
)
from flashbulb.analysis.statistics import MeanInterval, mean_interval
from flashbulb.cli.main import run
from flashbulb.errors import RunError, UsageError
from tests.envs import gym_examples
from tests.training.small_run import made_run

TASKS = "tests.envs.gym_examples"
SIX = f"{TASKS}:make_six"


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("runs"), "six", "cpo", f"{TASKS}:make_six", cost_limit=2.0)


class Unequal:
    """Episodes of environment i last i + 1 steps: the first to finish are mostly short ones."""

    env_id, max_episode_steps = "Unequal", 3

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def reset(self, seed=None):
        self.elapsed = np.zeros(self.num_envs, int)
        return np.zeros((self.num_envs, 3), np.float32), {}

    def step(self, actions):
        self.elapsed += 1
        ended = self.elapsed > np.arange(self.num_envs)
        self.elapsed[ended] = 0
        nothing, obs = np.zeros(self.num_envs), np.zeros((self.num_envs, 3), np.float32)
        return obs, np.ones(self.num_envs), nothing + 2, ended, ended & False, {}


def test_exactly_the_episodes_asked_for_and_no_bias_to_short_ones(six):
    policy = flashbulb.load_policy(six, env=SIX)
    episodes = run_episodes(Unequal(3), policy, 7, deterministic=True)
    assert sorted(episodes.lengths.tolist()) == [1, 1, 1, 2, 2, 3, 3]
    np.testing.assert_array_equal(episodes.returns, episodes.lengths)
    np.testing.assert_array_equal(episodes.costs, 2 * episodes.lengths)


def test_the_episodes_are_those_of_the_environment_by_hand(six):
    policy = flashbulb.load_policy(six, env=SIX)
    env = evaluation_env(policy, 2)
    episodes = run_episodes(env, policy, 4, deterministic=True)
    from flashbulb.envs.gym_adapter import episode_seed

    expected = []
    for env_index in range(2):
        for episode in range(2):
            alone = gym_examples.make_six()
            obs, _ = alone.reset(seed=episode_seed(2**31 + env_index, episode))
            total, spent, length, ended = 0.0, 0.0, 0, False
            while not ended:
                obs, reward, cost, terminated, truncated, _ = alone.step(policy.predict(obs))
                total, spent, length = total + reward, spent + cost, length + 1
                ended = terminated or truncated
            expected.append((total, spent, length))
    np.testing.assert_allclose(np.transpose(episodes), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 - 1, 2**31, 2**32 - 30])
def test_seeds_are_disjoint_from_training(seed):
    training = set(range(seed, seed + 20))
    assert not training & set(range(evaluation_seed(seed), evaluation_seed(seed) + 20))


def test_the_normaliser_stays_frozen_and_results_repeat(six):
    policy = flashbulb.load_policy(six, env=SIX)
    before = [np.array(array) for array in policy.normalise]
    first = evaluate(policy, 5, ("deterministic", "stochastic"))
    assert first == evaluate(policy, 5, ("deterministic", "stochastic"))
    for ours, theirs in zip(before, policy.normalise, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert first["deterministic"] != first["stochastic"]


def test_a_budget_algorithm_is_evaluated_with_its_last_budget(tmp_path):
    policy = flashbulb.load_policy(made_run(tmp_path, "s", "simmer-pid", SIX, cost_limit=20.0), env=SIX)
    env = evaluation_env(policy, 2)
    obs, _ = env.reset()
    np.testing.assert_allclose(obs[:, -1], 17.0 / 20.0)


def test_intervals_cover_as_often_as_they_say(monkeypatch):
    """95 % intervals of 60 skewed values: over 300 tries between 91 and 98 in a hundred hold the mean."""
    monkeypatch.setattr(statistics, "RESAMPLES_OF_A_MEAN", 999)
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        found = mean_interval(rng.gamma(2.0, 3.0, 60))
        covered += found.low <= 6.0 <= found.high
    assert 0.91 <= covered / 300 <= 0.98


def test_intervals_of_little_or_equal_data():
    assert mean_interval(np.array([3.0])) == MeanInterval(3.0, None, None)
    assert mean_interval(np.full(9, 2.0)) == MeanInterval(2.0, 2.0, 2.0)


def test_share_over_the_limit_counts_strictly():
    episodes = EpisodeResults(np.zeros(4), np.array([0.0, 25.0, 26.0, 30.0]), np.ones(4))
    assert episode_statistics(episodes, 25.0)["share_over_limit"].mean == 0.5


def test_endless_episodes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_LENGTH_FACTOR", 0.02)
    endless = f"{TASKS}:broken_endless"
    policy = flashbulb.load_policy(made_run(tmp_path, "e", "cpo", endless), env=endless)
    with pytest.raises(RunError, match="give it a time limit"):
        evaluate(policy, 2, ("deterministic",))


def test_the_command_prints_a_table_or_json(six, capsys):
    assert run(["evaluate", str(six), "--env", SIX, "--episodes", "6"]) == 0
    table = capsys.readouterr().out
    for words in (
        "deterministic",
        "stochastic",
        "episode return",
        "episode cost (limit 2)",
        "over the limit",
        "6 epis",
    ):
        assert words in table
    assert run(["evaluate", str(six), "--env", SIX, "--episodes", "6", "--json", "--stochastic"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert "deterministic" not in plain
    assert plain["episodes"] == 6
    assert plain["seed"] == 2**31
    row = plain["stochastic"]["cost"]
    assert row["low"] <= row["mean"] <= row["high"]


@pytest.mark.parametrize(
    ("extra", "says"),
    [(["--episodes", "0"], "episodes: 0"), (["--video", "a.mp4"], ".gif"), (["--video", "/no/a.gif"], "dir")],
)
def test_wrong_options_are_one_sentence(six, extra, says):
    with pytest.raises(UsageError, match=says):
        run(["evaluate", str(six), "--env", SIX, *extra])
