"""User environments behind the contract, in processes, in threads and one after the other."""

import contextlib
import os
import signal

import gymnasium
import numpy as np
import pytest

from flashbulb.envs import CostVectorEnv, make
from flashbulb.envs.gym_adapter import episode_seed
from flashbulb.errors import RunError, UsageError
from tests.envs import gym_examples
from tests.envs import test_base as contract

EXAMPLES = "tests.envs.gym_examples"
WALK = f"{EXAMPLES}:make_walk"
PROMISES = [getattr(contract, name) for name in dir(contract) if name.startswith("test_")]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("test_"))
def test_the_contract_holds(promise, monkeypatch):
    """Every promise that our own tasks keep; in threads here, since the pools are compared below."""
    monkeypatch.setattr(contract, "make", lambda *args, **kw: make(*args, **kw, vectorise="threads"))
    promise(f"{EXAMPLES}:make_six")


def history(vectorise, source=WALK, workers=2, steps=100, num_envs=3):
    env = make(source, num_envs, seed=4, threads=workers, vectorise=vectorise)
    assert isinstance(env, CostVectorEnv)
    obs, _ = env.reset()
    rng = np.random.default_rng(0)
    rows = [obs]
    for _ in range(steps):
        out = env.step(rng.uniform(-1, 1, (num_envs, 2)))
        rows += [*out[:5], out[5]["final_obs"], out[5]["_final_obs"]]
    state = env.get_state()
    env.close()
    return rows + list(state.values())


def test_processes_threads_and_serial_give_the_same_numbers():
    serial = history("serial")
    for other in (history("threads"), history("processes"), history("processes", workers=1)):
        for ours, theirs in zip(serial, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_the_numbers_are_those_of_the_environment_itself():
    env = make(WALK, 2, seed=4, vectorise="serial")
    obs, _ = env.reset()
    alone, episode = gym_examples.make_walk(), 0
    mine, _ = alone.reset(seed=episode_seed(5, episode))
    np.testing.assert_array_equal(obs[1], mine)
    rng = np.random.default_rng(1)
    for _ in range(70):
        action = rng.uniform([-1, -0.5], [1, 2], (2, 2)).astype(np.float32)
        obs, reward, cost, terminated, truncated, info = env.step(action)
        mine, r, te, tr, extra = alone.step(action[1])
        assert (reward[1], cost[1], terminated[1], truncated[1]) == (r, extra["cost"], te, tr)
        np.testing.assert_array_equal(info["final_obs"][1], mine)
        if te or tr:
            episode += 1
            mine, _ = alone.reset(seed=episode_seed(5, episode))
        np.testing.assert_array_equal(obs[1], mine)
    assert episode >= 2
    assert env.max_episode_steps == 30


def test_discrete_actions_keep_their_start():
    env = make(f"{EXAMPLES}:make_buttons", 2, vectorise="serial")
    env.reset()
    obs, *_ = env.step(np.array([5, 7]))
    assert obs[0, 2] == -0.5
    assert obs[1, 2] == 0.5


def test_gymnasium_ids_and_modules_that_register_them():
    assert "StrangeWalk-v0" in gymnasium.registry
    for source in ("StrangeWalk-v0", f"{EXAMPLES}:StrangeWalk-v0"):
        env = make(source, 1, vectorise="serial")
        assert env.max_episode_steps == 40
        env.reset()
        assert env.step(np.zeros((1, 2)))[2].tolist() == [0.0]
    assert make("flashbulb/HazardField-v0", 1).env_id == "HazardField-v0"


def test_a_snapshot_crosses_from_processes_to_threads():
    env, other = make(WALK, 3, seed=1, threads=2), make(WALK, 3, seed=9, threads=2, vectorise="threads")
    env.reset()
    actions = contract.random_actions(env, 50)
    contract.play(env, actions[:20])
    other.set_state(env.get_state())
    contract.assert_identical(contract.play(env, actions[20:]), contract.play(other, actions[20:]))
    env.close()


def test_an_environment_that_does_not_repeat_itself_is_found_out():
    env = make(f"{EXAMPLES}:broken_unseeded", 2, vectorise="serial")
    env.reset()
    env.step(np.zeros((2, 2)))
    with pytest.raises(RunError, match="did not repeat itself"):
        env.set_state(env.get_state())


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_worker_that_dies_is_named(how):
    env = make(f"{EXAMPLES}:broken_dies" if how == "exit" else WALK, 4, threads=2)
    env.reset()
    victim = env._pool._workers[1]._process.pid
    if how == "kill":
        os.kill(victim, signal.SIGKILL)
    with pytest.raises(RunError, match="died") as caught:
        contract.play(env, np.zeros((30, 4, 2)))
    assert ("exit code 3" if how == "exit" else f"{victim}, which ran environments 2 to 3") in str(caught.value)
    assert "\n" not in str(caught.value)
    env.close()


@pytest.mark.parametrize("vectorise", ["serial", "processes"])
def test_an_error_inside_is_told_with_its_place(vectorise):
    env = make(f"{EXAMPLES}:broken_raises", 2, threads=1, vectorise=vectorise)
    env.reset()
    with pytest.raises(
        RunError, match=r"environment 0 .* ZeroDivisionError: the wheel fell off, gym_examples.py line \d+"
    ):
        env.step(np.zeros((2, 2)))
    env.close()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("no_such_module:make", "cannot be imported"),
        (f"{EXAMPLES}:make_wlak", "no function 'make_wlak'"),
        ("os:getcwd", "no Gymnasium environment"),
        (f"{EXAMPLES}:Faulty", "could not be made"),
        (":", "cannot be imported"),
        (":make", "cannot be imported"),
        ("os:", "no function"),
    ],
)
@pytest.mark.parametrize("vectorise", ["serial", "processes"])
def test_a_wrong_name_is_one_sentence(source, says, vectorise):
    with pytest.raises(UsageError, match=says) as caught:
        make(source, 1, vectorise=vectorise)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "says"), [("no_cost", "info"), ("two_costs", "2 entries"), ("four", "4 values"), ("shape", "shape")]
)
def test_answers_of_another_form_are_refused(fault, says):
    env = make(f"{EXAMPLES}:broken_{fault}", 1, vectorise="serial")
    env.reset()
    with pytest.raises(UsageError, match=says):
        env.step(np.zeros((1, 2)))


def test_an_episode_without_end_is_named_before_its_checkpoints_grow_without_bound(monkeypatch):
    monkeypatch.setattr("flashbulb.envs.gym_adapter.LONGEST_EPISODE", 60)
    env = make("tests.envs.gym_examples:broken_endless", 2, vectorise="serial")
    env.reset(seed=0)
    says = r"an episode of .*broken_endless has not ended after 60 steps; wrap it in gymnasium\.wrappers\.TimeLimit"
    still = np.zeros((2, *env.single_action_space.shape))
    for _ in range(60):
        env.step(still)
    with pytest.raises(RunError, match=says):
        env.step(still)
    env.close()


@pytest.mark.parametrize("vectorise", ["serial", "processes"])
def test_an_environment_may_say_where_its_lidars_are(vectorise):
    with contextlib.closing(make(f"{EXAMPLES}:make_bumper", num_envs=2, vectorise=vectorise)) as env:
        assert env.lidar_groups == ((1, 3),)
    with contextlib.closing(make(f"{EXAMPLES}:make_walk", num_envs=2, vectorise=vectorise)) as env:
        assert env.lidar_groups == ()


def test_lidars_that_are_not_in_the_observation_are_refused_in_one_sentence():
    with pytest.raises(UsageError, match=r"lidar_groups \(\(1, 4\),\) is not allowed; .* which has 3"):
        make(f"{EXAMPLES}:broken_lidar", num_envs=1, vectorise="serial")
