"""Mistakes known from other libraries, one test for each; every one fails if we make the same mistake.

Tests of mistakes that lie within one module are beside that module's other tests:

- a divergence that is not finite, a failed search: tests/algorithms/test_trust_region.py
- Saute's final observation, Simmer's budget: tests/envs/test_budget_wrapper.py, tests/algorithms/test_cost_budget.py
- derivative kick and windup of PID: tests/algorithms/test_multipliers.py
- CUP's broadcast and its cap: tests/algorithms/test_cup.py
"""

import io

import jax
import numpy as np
import pytest
from gymnasium import spaces
from rich.console import Console

from flashbulb.algorithms import cpo, learner
from flashbulb.algorithms.advantages import estimate_advantages
from flashbulb.algorithms.critics import init_critics, values
from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import Gaussian, GaussianOutputs, policy_for
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.batch import Batch, EpisodeMeans
from flashbulb.config import MemoryConfig, PolicyConfig
from flashbulb.memory import FlashbulbMemory
from flashbulb.normaliser import Normaliser
from flashbulb.training.batch_means import RunningEpisodes
from flashbulb.training.collect import Sampler, collect
from flashbulb.training.loop import train
from tests.algorithms.corridor import STEPS, Corridor

SMALL = {"policy": {"hidden": (4,)}, "critic": {"hidden": (4,), "passes": 1}, "proximal": {"passes": 1}}
TIME, ENVS = 12, 3
UNIT = Normaliser.empty(2).frozen()


def sample(seed=0, costs=None):
    rng = np.random.default_rng(seed)
    flags = rng.random((2, TIME, ENVS)) < 0.1
    numbers = rng.normal(size=(2, TIME, ENVS)).astype(np.float32)
    observations = rng.normal(size=(2, TIME, ENVS, 2)).astype(np.float32)
    costs = (numbers[1] > 0).astype(np.float32) if costs is None else costs
    actions = rng.normal(size=(TIME, ENVS, 1)).astype(np.float32)
    intrinsic = rng.random((TIME, ENVS)).astype(np.float32)
    samples = *observations, actions, numbers[0], costs, flags[0], flags[0] | flags[1]
    return Batch(0, *samples, UNIT, intrinsic=intrinsic, beta=np.float32(0))


def critics(config):
    return init_critics(jax.random.key(0), 2, 1, config.critic)


def with_zero_values(config):
    nothing = critics(config)
    return nothing._replace(networks=jax.tree.map(np.zeros_like, nothing.networks))


@pytest.mark.parametrize(("scale", "c"), [("episode", 15.0), ("step", 15.0 / 250)])
def test_the_scale_of_cpos_constraint_is_the_one_asked_for(scale, c, monkeypatch):
    config = configure("cpo", "E", **SMALL, trust_region={"scale": scale, "cg_iterations": 1, "search_steps": 1})

    def spy(policy, params, batch, constraint, *rest):
        return params, {"c": constraint}

    monkeypatch.setattr(cpo, "trust_region_step", spy)
    monkeypatch.setattr(learner, "fit", lambda critics, *rest: (critics, np.zeros(2)))
    policy = Gaussian(spaces.Box(-1, 1, (1,)))
    parts = Learner(policy, get_algorithm("cpo"), config)
    batch = sample()._replace(means=EpisodeMeans(0.0, 40.0, 250.0, False))
    state, batch, _ = parts.estimate(parts.init(2, jax.random.key(0)), batch)
    _, metrics = parts.update(state, batch, 0.0, jax.random.key(1))
    assert float(metrics["c"]) == pytest.approx(c)


def test_kl_is_summed_over_action_dimensions():
    """The one `kl` of a policy serves trust region and early stopping alike (tests/algorithms/test_proximal.py)."""
    one, three = (Gaussian(spaces.Box(-1, 1, (n,))) for n in (1, 3))
    pairs = [
        (GaussianOutputs(np.full((5, n), 0.3), np.zeros(n)), GaussianOutputs(np.zeros((5, n)), np.zeros(n)))
        for n in (1, 3)
    ]
    np.testing.assert_allclose(one.kl(*pairs[0]), 0.3**2 / 2, rtol=1e-6)
    np.testing.assert_allclose(three.kl(*pairs[1]), 3 * 0.3**2 / 2, rtol=1e-6)


def walk(env, policy, params, running, steps, direction):
    noise = np.full((steps, env.num_envs, 1), 50.0 * direction, np.float32)  # drowns the mean
    return collect(env, Sampler(policy, params, UNIT), noise, running, 0)


@pytest.fixture
def walker():
    env = Corridor(2)
    policy = policy_for(env.single_observation_space, env.single_action_space)
    params = jax.tree.map(np.asarray, policy.init(jax.random.key(0), 2, PolicyConfig(hidden=(2,))))
    return env, policy, params, RunningEpisodes.start(env.reset(seed=0)[0])


def test_the_episode_cost_is_that_of_this_batch_and_of_no_older_one(walker):
    env, policy, params, running = walker
    batch, running = walk(env, policy, params, running, STEPS, 1)
    assert batch.means.cost == STEPS - 5
    batch, running = walk(env, policy, params, running, STEPS, -1)
    assert batch.means.cost == 0


def test_costs_have_their_own_discount():
    config = configure("cpo", "E", **SMALL, gamma=0.9, cost_gamma=0.5, cost_lam=1.0)
    data = sample()
    seen = estimate_advantages(with_zero_values(config), data, data.rewards, config)
    expected = np.zeros((TIME, ENVS))
    for t in reversed(range(TIME)):
        following = expected[t + 1] if t + 1 < TIME else 0.0
        expected[t] = data.costs[t] + 0.5 * following * ~data.ended[t]
    np.testing.assert_allclose(seen.a_c, expected, rtol=1e-5)


def test_no_cost_stays_no_cost():
    """Beside costly members, one that never pays has a cost value target of exactly 0, not of less."""
    config = configure("cpo", "E", **SMALL)
    costs = np.zeros((TIME, ENVS), np.float32)
    costs[:, 1:] = 1.0
    data = sample(costs=costs)
    seen = estimate_advantages(with_zero_values(config), data, data.rewards, config)
    target = np.asarray(seen.a_c + seen.v_c)
    np.testing.assert_array_equal(target[:, 0], 0.0)
    assert (target[:, 1:] >= 1).all()


def test_iterations_do_not_reset_and_cut_episodes_count_in_full(walker):
    env, policy, params, running = walker
    first, running = walk(env, policy, params, running, 30, 1)
    assert len(first.episodes.costs) == 0
    second, running = walk(env, policy, params, running, 30, 1)
    np.testing.assert_array_equal(second.episodes.lengths, STEPS)
    np.testing.assert_array_equal(second.episodes.costs, STEPS - 5)
    np.testing.assert_allclose(second.observations[0], first.next_observations[-1])


def test_a_truncation_by_the_environment_is_respected_and_bootstrapped(walker):
    """Truncated at 40 steps, not at a hard-coded 1,000; the value there is that of the final observation."""
    env, policy, params, running = walker
    batch, _ = walk(env, policy, params, running, STEPS, 1)
    assert batch.ended[-1].all()
    assert not batch.ended[:-1].any()
    assert not batch.terminated.any()
    config = configure("cpo", "E", **SMALL, cost_lam=0.0)
    data = batch._replace(intrinsic=np.zeros_like(batch.costs), beta=np.float32(0))
    valued = critics(config)
    seen = estimate_advantages(valued, data, data.rewards, config)
    final = values(valued, np.array([[1.0, 1.0]], np.float32))[1]  # x = 1 at the end of time
    np.testing.assert_allclose(seen.a_c[-1], 1.0 + 0.99 * final - seen.v_c[-1], rtol=1e-4)


def test_a_frozen_normaliser_does_not_change_when_training_goes_on():
    """Evaluation and an iteration's sampling hold the frozen one; training's statistics go on without them."""
    normaliser = Normaliser.empty(2)
    frozen = normaliser.frozen()
    seen = frozen(np.ones((1, 2), np.float32))
    later = normaliser.absorb(np.random.default_rng(0).normal(3.0, 2.0, (500, 2)))
    np.testing.assert_array_equal(frozen(np.ones((1, 2), np.float32)), seen)
    assert int(normaliser.seen) == 0
    assert (later.frozen()(np.ones((1, 2), np.float32)) < 0).all()


def test_no_transition_leads_from_one_episode_into_the_next(walker):
    env, policy, params, running = walker
    batch, _ = walk(env, policy, params, running, 2 * STEPS, 1)
    assert len(batch.episodes.lengths) == 2 * env.num_envs
    np.testing.assert_array_equal(batch.episodes.lengths, STEPS)  # none inserted
    np.testing.assert_allclose(batch.next_observations[STEPS - 1], [[1.0, 1.0]] * 2)  # the old one's last
    np.testing.assert_allclose(batch.observations[STEPS], [[0.0, 0.0]] * 2)  # the new one's first


def test_memory_and_query_meet_under_the_same_normaliser_and_distance_matters():
    rng = np.random.default_rng(0)
    danger = rng.normal(size=(10, 3)).astype(np.float32)
    config = MemoryConfig(neighbours=1, embedding=2)
    memory = FlashbulbMemory.empty(3, config, rng).add(danger, 0, config)
    drifted = Normaliser.empty(3).absorb(rng.normal(5.0, 3.0, (100, 3))).frozen()
    at_danger, _ = memory.intrinsic_cost(danger, drifted, config)
    np.testing.assert_allclose(at_danger, 1.0, rtol=1e-5)
    away = [memory.intrinsic_cost(danger + by, drifted, config)[0].mean() for by in (0.05, 0.5, 5.0)]
    assert away[0] > 2 * away[1] > 8 * away[2]  # over its own mean, all three would be alike


def test_a_budget_changes_what_is_learned_from_and_not_what_is_reported(tmp_path):
    """Reshaped rewards in the metrics would show returns that no policy earned."""
    config = configure(
        "saute", "Corridor", **SMALL, num_envs=4, steps_per_iteration=4 * STEPS, steps=4 * STEPS, cost_limit=0.0,
        budget={"unsafe_reward": -1000.0}, runs_dir=tmp_path,
    )  # fmt: skip
    result = train(config, Console(file=io.StringIO()), env=Corridor(4))
    assert result.metrics["cost"][0] > 0  # beyond the budget, where a step would have counted -1000
    assert result.metrics["return"][0] > -STEPS
