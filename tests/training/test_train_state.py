"""The state before the first iteration: environments at all times of an episode, a normaliser that has seen some."""

import io

import jax
import numpy as np
import pytest
from rich.console import Console

from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.envs import make
from flashbulb.envs.base import CLOCKS, stagger_episodes
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import resume, train
from flashbulb.training.train_state import start
from tests.algorithms.corridor import Corridor
from tests.training.killing import TINY, assert_identical

TASKS = ["HazardField-v0", "SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1"]


def clocks(env):
    state = env.get_state()
    (name,) = (name for name in CLOCKS if name in state)
    return state[name]


@pytest.mark.parametrize("task", TASKS)
def test_stagger_spreads_the_clocks_and_leaves_all_else_alone(task):
    env = make(task, num_envs=5)
    env.reset(seed=0)
    before = env.get_state()
    assert (clocks(env) == 0).all()
    assert stagger_episodes(env)
    np.testing.assert_array_equal(clocks(env), np.arange(5) * env.max_episode_steps // 5)
    after = env.get_state()
    assert after.keys() == before.keys()
    for name in before.keys() - set(CLOCKS):
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_staggered_every_fifth_of_an_episode_has_ended_episodes(task):
    """As many as environments share it: one of five, two of ten. Without it, none until all end at once."""
    env = make(task, num_envs=5)
    env.reset(seed=0)
    stagger_episodes(env)
    action = np.zeros((5, *env.single_action_space.shape))
    part, ends = env.max_episode_steps // 5, []
    for _ in range(5):
        ended = np.zeros(5, bool)
        for _ in range(part):
            _, _, _, terminated, truncated, _ = env.step(action)
            ended |= terminated | truncated
        ends.append(ended)
    assert np.sum(ends, axis=1).tolist() == [1] * 5
    assert np.any(ends, axis=0).all()
    env.close()


def test_an_environment_without_a_clock_is_left_alone():
    env = Corridor(3)
    env.reset(seed=0)
    before = env.get_state()
    assert not stagger_episodes(env)
    for name, array in env.get_state().items():
        np.testing.assert_array_equal(array, before[name])


def started(warm_up, stagger=False, seed=3):
    config = configure("cpo", "HazardField-v0", **(TINY | {"warm_up": warm_up, "stagger": stagger, "seed": seed}))
    env = make("HazardField-v0", num_envs=2)
    policy = policy_for(env.single_observation_space, env.single_action_space)
    learner = Learner(policy, get_algorithm("cpo"), config)
    return start(env, learner, config), env, policy


def test_without_warm_up_the_first_normaliser_is_the_identity():
    state, env, _ = started(0)
    assert float(state.normaliser.seen) == 0
    np.testing.assert_array_equal(state.running.observations, env.observe())


def test_the_warm_up_fills_the_normaliser_with_the_moments_of_what_it_saw():
    state, env, policy = started(30)
    other = make("HazardField-v0", num_envs=2)
    seen = [other.reset(seed=3)[0]]
    params = jax.tree.map(np.asarray, state.learner.policy)
    noise = np.asarray(policy.noise(jax.random.fold_in(jax.random.key(3), 2**31 - 1), (30, 2)))
    for n in noise:
        seen.append(other.step(policy.to_env(policy.act(params, seen[-1].astype(np.float32), n)))[0])
    rows = np.concatenate(seen).astype(np.float64)
    assert float(state.normaliser.seen) == 62
    np.testing.assert_allclose(state.normaliser.mean, rows.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.normaliser.variance, rows.var(axis=0), rtol=1e-5, atol=1e-9)
    assert np.abs(state.normaliser.mean).max() > 0.01
    # The first iteration goes on from where the warm-up ended, in the environment as in the observations.
    np.testing.assert_array_equal(state.running.observations, seen[-1].astype(np.float32))
    np.testing.assert_array_equal(state.running.observations, env.observe().astype(np.float32))
    assert (clocks(env) == 30).all()
    assert state.env.keys() == env.get_state().keys()
    assert (state.env["elapsed"] == 30).all()


def test_warm_up_comes_after_the_staggering():
    state, env, _ = started(7, stagger=True)
    np.testing.assert_array_equal(clocks(env), [7, 7 + env.max_episode_steps // 2])
    assert int(state.totals.steps) == 0


LOOPS = {
    "trpo-pid": {},
    "cpo": {"integral": {"gain": 0.1}, "trust_region": {"recover": "infeasible", "cg_iterations": 3}},
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_closed_loop_resumes_exactly(name, tmp_path, monkeypatch):
    """The margin, the integral, the PID and the clocks are part of the checkpoint; the warm-up is not done twice."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *arguments, **options: None)
    loop = {"stagger": True, "warm_up": 20, "violations": 0.1, "cost_estimate": "steps"}
    loop |= {"num_envs": 5, "steps_per_iteration": 500, "steps": 3000}
    settings = TINY | loop | LOOPS[name] | {"runs_dir": tmp_path}
    whole, cut = (configure(name, "HazardField-v0", **settings, name=directory) for directory in ("whole", "cut"))
    train(whole, Console(file=io.StringIO()))
    train(cut, Console(file=io.StringIO()))
    newest = max((tmp_path / "cut" / "checkpoints").glob("*.safetensors"))
    newest.unlink()
    rows = (tmp_path / "cut" / "metrics.csv").read_bytes()
    resume(tmp_path / "cut", Console(file=io.StringIO()))
    assert (tmp_path / "cut" / "metrics.csv").read_bytes() == rows
    assert_identical(tmp_path / "whole", tmp_path / "cut", 6)
    metrics = read_csv(tmp_path / "whole" / "metrics.csv")
    assert len(set(metrics["margin_z"])) > 1  # the loop was not at rest
    assert metrics["cost_standard_error"].max() > 0
    if name == "cpo":
        assert np.abs(metrics["integral"]).max() > 0
