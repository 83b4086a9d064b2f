"""The batch as a whole: contract, autoreset, snapshots, threads, long random runs."""

import numpy as np
import pytest

from flashbulb.envs import registry
from flashbulb.envs.base import CostVectorEnv
from flashbulb.envs.navigation import ENV_IDS, Navigation
from flashbulb.envs.navigation.scoring import GOAL_COSTS, empty_step_buffers, score_goal, scores_of
from flashbulb.errors import UsageError
from tests.envs.navigation.golden import TASKS


def _random_actions(steps, count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, count, 2))


def _assert_same(one, other):
    for a, b in zip(one[:5], other[:5], strict=True):
        np.testing.assert_array_equal(a, b)


def test_all_tasks_are_registered():
    assert set(TASKS) <= set(registry.env_ids())
    assert set(ENV_IDS) <= set(registry.env_ids())
    env = registry.make("SafetyCarCircle1-v0", num_envs=2)
    assert isinstance(env, CostVectorEnv)
    assert env.single_observation_space.shape == (40,)


@pytest.mark.parametrize("env_id", TASKS)
def test_ten_thousand_random_steps(env_id):
    env = Navigation(env_id, 10, seed=3, threads=2)
    obs, _ = env.reset()
    low, high = env.single_observation_space.low, env.single_observation_space.high
    endings = np.zeros(10)
    for actions in _random_actions(1005, 10):
        obs, reward, cost, terminated, truncated, info = env.step(actions)
        assert ((obs >= low) & (obs <= high)).all()  # false for NaN
        assert np.isfinite(reward).all()
        assert np.isin(cost, (0.0, 1.0)).all()
        assert not terminated.any()
        np.testing.assert_array_equal(info["_final_obs"], truncated)
        endings += truncated
    np.testing.assert_array_equal(endings, 1005 // env.max_episode_steps)


@pytest.mark.parametrize("env_id", TASKS)
def test_snapshot_into_another_batch(env_id):
    """Future steps, across an autoreset, are bit-equal in a batch of another size with other threads."""
    actions = _random_actions(30, 4)
    source = Navigation(env_id, 4, seed=1, threads=2)
    source.reset()
    for a in actions[:20]:
        source.step(a)
    source.state.steps[2] = source.max_episode_steps - 5
    snapshot, seen = source.get_state(), source.observe()
    target = Navigation(env_id, 7, seed=99, threads=1)
    target.reset()
    indices = np.array([5, 0, 3, 6])
    target.set_state(snapshot, indices)
    np.testing.assert_array_equal(target.observe()[indices], seen)
    for a in actions[20:]:
        padded = np.zeros((7, 2))
        padded[indices] = a
        theirs, ours = source.step(a), target.step(padded)
        _assert_same(theirs, [x[indices] for x in ours[:5]])
        np.testing.assert_array_equal(theirs[5]["final_obs"], ours[5]["final_obs"][indices])
    source.set_state(snapshot)
    np.testing.assert_array_equal(source.observe(), seen)


def test_step_and_observe_agree():
    env = Navigation("SafetyCarButton1-v0", 3, seed=1, threads=1)
    env.reset()
    for a in _random_actions(5, 3):
        obs = env.step(a)[0]
        np.testing.assert_array_equal(env.observe(), obs)


@pytest.mark.parametrize("env_id", ["SafetyPointGoal1-v0", "SafetyCarButton1-v0"])
def test_autoreset_goes_on_with_the_stream(env_id):
    """What follows the last step of an episode is what an explicit reset would have given."""
    ends, goes_on = (Navigation(env_id, 2, seed=5, threads=1) for _ in range(2))
    for env in (ends, goes_on):
        env.reset()
    ends.state.steps[1] = ends.max_episode_steps - 1
    actions = _random_actions(1, 2)[0]
    obs, reward, cost, _, truncated, info = ends.step(actions)
    last = goes_on.step(actions)
    np.testing.assert_array_equal(truncated, [False, True])
    np.testing.assert_array_equal(info["final_obs"][1], last[0][1])
    np.testing.assert_array_equal((reward, cost), last[1:3])
    again, _ = goes_on.reset()
    np.testing.assert_array_equal(obs[1], again[1])
    np.testing.assert_array_equal(obs[0], last[0][0])


def test_seed_gives_environment_i_the_stream_of_seed_plus_i():
    many, one = Navigation("SafetyPointButton1-v0", 3, 0, 1), Navigation("SafetyPointButton1-v0", 1, 0, 1)
    np.testing.assert_array_equal(many.reset(seed=40)[0][2], one.reset(seed=42)[0][0])
    assert not np.array_equal(one.reset()[0], one.reset()[0])


def test_episode_terminates_when_no_goal_can_be_placed():
    env = Navigation("SafetyPointGoal1-v0", 2, seed=0, threads=1)
    env.reset()
    old = env.state.objects[:, env.rules.goal].copy()
    env.state.physics[:, 1:3] = old[:, :2]
    env.state.physics[1, 1] += 0.31  # just short of it
    crowded = env.rules._replace(keepout=np.full_like(env.rules.keepout, 3.0))
    scores = scores_of(empty_step_buffers(2, len(GOAL_COSTS)))
    assert score_goal(env.state, crowded, scores) == 1
    np.testing.assert_array_equal(scores.terminated, [True, False])
    np.testing.assert_array_equal(scores.goal_met, [True, False])
    np.testing.assert_array_equal(env.state.objects[:, env.rules.goal], old)


def test_actions_are_clipped():
    wide, bounded = (Navigation("SafetyPointCircle1-v0", 2, 0, 1) for _ in range(2))
    wide.reset(), bounded.reset()
    _assert_same(wide.step(np.array([[3.0, -7.0], [0.5, 2.0]])), bounded.step(np.array([[1.0, -1.0], [0.5, 1.0]])))


def test_bad_input_is_named():
    env = Navigation("SafetyPointGoal1-v0", 2, seed=0, threads=1)
    with pytest.raises(UsageError, match="has not begun"):
        env.step(np.zeros((2, 2)))
    env.reset()
    with pytest.raises(UsageError, match=r"actions: shape \(3, 2\)"):
        env.step(np.zeros((3, 2)))
    with pytest.raises(UsageError, match="actions: NaN"):
        env.step(np.full((2, 2), np.nan))
    with pytest.raises(UsageError, match="seed: -1"):
        env.reset(seed=-1)
    with pytest.raises(UsageError, match="state"):
        env.set_state(env.get_state(), indices=np.array([0]))
