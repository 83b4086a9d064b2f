"""Several costs: each is estimated and controlled as it would be alone, and together they shape one step."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.algorithms.actor import Actor, lagrangian_advantage
from flashbulb.algorithms.advantages import cost_to_go
from flashbulb.algorithms.critics import values
from flashbulb.algorithms.crpo import crpo_actor, most_exceeded
from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import Gaussian
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.batch import Batch, Constraint, EpisodeMeans
from flashbulb.normaliser import Normaliser
from tests.algorithms.actor_batches import POLICY as SMALL_POLICY
from tests.algorithms.actor_batches import example, inputs

TIME, ENVS = 20, 4
LIMITS = {"a": 25.0, "b": 4.0}
SMALL = {"policy": {"hidden": (3,)}, "critic": {"hidden": (3,), "passes": 1}}
POLICY = Gaussian(spaces.Box(-1, 1, (2,)))
LEARNERS = ["pid-lag-twin", *(pytest.param(name, marks=pytest.mark.slow) for name in ("trpo-pid", "ppo-lag", "ipo"))]


def sample(cost=(31.0, 3.0), error=(2.0, 0.5)):
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(2, TIME, ENVS, 3)).astype(np.float32)
    actions = rng.normal(size=(TIME, ENVS, 2)).astype(np.float32)
    rewards = rng.normal(size=(TIME, ENVS)).astype(np.float32)
    costs = (rng.random((TIME, ENVS, 2)) < [0.3, 0.1]).astype(np.float32)
    ended = rng.random((TIME, ENVS)) < 0.1
    samples = *observations, actions, rewards, costs, ended & (rng.random((TIME, ENVS)) < 0.5), ended
    means = EpisodeMeans(0.0, np.array(cost), 1000.0, False, np.array(error))
    intrinsic = rng.random((TIME, ENVS, 2)).astype(np.float32)
    added = {"means": means, "intrinsic": intrinsic, "beta": np.array([0.5, 0.02])}
    return Batch(0, *samples, Normaliser.empty(3).frozen(), **added)


def alone(batch, k):
    """The batch of one of the costs, as if there were no other."""
    means = batch.means._replace(cost=batch.means.cost[k], cost_error=batch.means.cost_error[k])
    return batch.of_cost(k)._replace(means=means)


def made(name, limit):
    scale = "centred" if name == "ppo-lag" else "standardised"
    config = configure(name, "E", cost_limit=limit, violations=0.1, cost_advantage=scale, **SMALL)
    return Learner(POLICY, get_algorithm(name), config)


def with_critics_of(state, both, k, count):
    """The state of a learner of one cost with the policy and the critics of the k-th cost of another's."""
    rows = np.array([0, *range(1 + k * count, 1 + (k + 1) * count)])
    pick = jax.tree.map(lambda leaf: leaf[rows], both.critics)
    return state._replace(policy=both.policy, critics=pick)


@pytest.mark.parametrize("name", LEARNERS)
def test_each_cost_is_treated_as_if_it_were_alone(name):
    """Two iterations, so that multipliers and margins have a past."""
    learner, count = made(name, LIMITS), get_algorithm(name).cost_critics
    start = learner.init(3, jax.random.key(0))
    assert len(jax.tree.leaves(start.critics.networks)[0]) == 1 + 2 * count
    batches = [sample(), sample(cost=(24.0, 4.5), error=(1.0, 0.7))]
    state, found = start, []
    for batch in batches:
        state, filled, metrics = learner.estimate(state, batch)
        found.append((filled, metrics))
    for k, limit in enumerate(LIMITS.values()):
        single = made(name, limit)
        own = with_critics_of(single.init(3, jax.random.key(0)), start, k, count)
        for batch, (filled, metrics) in zip(batches, found, strict=True):
            own, expected, numbers = single.estimate(own, alone(batch, k))
            close = {"rtol": 2e-5, "atol": 2e-5}
            np.testing.assert_allclose(filled.actor.cost_advantage[:, k], expected.actor.cost_advantage, **close)
            np.testing.assert_allclose(filled.actor.reward_advantage, expected.actor.reward_advantage, **close)
            np.testing.assert_allclose(filled.cost_bias[..., k], expected.cost_bias, **close)
            np.testing.assert_allclose([x[k] for x in filled.constraint], list(expected.constraint), **close)
            rows = slice(1 + k * count, 1 + (k + 1) * count)
            np.testing.assert_allclose(filled.critic_targets[rows], expected.critic_targets[1:], **close)
            for column, value in numbers.items():
                np.testing.assert_allclose(metrics[column][k], value, **close, err_msg=column)
        ours, theirs = (jax.tree.leaves((after.multiplier, after.margin)) for after in (state, own))
        for both, one in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(both[..., k], one, **close)


def test_the_multipliers_by_hand():
    """lambda = (K_P Delta + K_I I)_+ with the limit of each: 6 over the first, 1 under the second."""
    config = configure("pid-lag", "E", cost_limit=LIMITS, pid={"initial": 0.0}, **SMALL)
    learner = Learner(POLICY, get_algorithm("pid-lag"), config)
    batch = sample()._replace(beta=np.zeros(2))
    _, filled, metrics = learner.estimate(learner.init(3, jax.random.key(0)), batch)
    np.testing.assert_allclose(metrics["lambda"], [0.1 * 6 + 0.01 * 6, 0.0], rtol=1e-5)
    np.testing.assert_allclose(filled.constraint.excess, [6.0, -1.0], rtol=1e-5)


def test_the_lagrangian_advantage_by_hand():
    a_r, a_c, lam = jnp.array([1.0, -2.0]), jnp.array([[3.0, 1.0], [0.5, -4.0]]), jnp.array([2.0, 0.5])
    expected = [(1 - 6 - 0.5) / 3.5, (-2 - 1 + 2) / 3.5]
    np.testing.assert_allclose(lagrangian_advantage(a_r, a_c, lam), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("excess", "chosen"),
    [
        ((5.0, 2.0), "b"),  # 20 % and 50 %
        ((20.0, 2.0), "a"),  # 80 % and 50 %
        ((5.0, -1.0), "a"),
        ((-1.0, 0.9), ""),  # within the tolerance of 1
        ((1.1, 0.9), "a"),  # 22 % of the second, but within the tolerance
        ((-3.0, -3.0), ""),
    ],
)
def test_crpo_steps_for_the_cost_that_is_exceeded_most(excess, chosen):
    exceeded = jnp.array(excess) > 1.0
    found = most_exceeded(jnp.array(excess), exceeded, np.array([25.0, 4.0]))
    assert [name for name, yes in zip("ab", found, strict=True) if yes] == list(chosen)


def test_crpo_steps_as_with_that_cost_alone():
    params, batch = example()
    rng = np.random.default_rng(1)
    costs = rng.normal(size=(len(batch.actions), 2)).astype(np.float32)
    two = jax.jit(crpo_actor(SMALL_POLICY, configure("crpo", "E", cost_limit=LIMITS)))
    one = jax.jit(crpo_actor(SMALL_POLICY, configure("crpo", "E")))
    zeros = np.zeros(2, np.float32)
    for excess, k in (((5.0, 2.0), 1), ((20.0, 2.0), 0), ((-1.0, -1.0), None)):
        both = Constraint(np.float32(excess), zeros, zeros)
        asked = inputs(batch._replace(cost_advantage=costs))._replace(constraint=both)
        actor, metrics = two(Actor(params, ()), asked)
        np.testing.assert_array_equal(metrics["for_cost"], [k == 0, k == 1])
        own = Constraint(np.float32(-1 if k is None else 1), np.float32(0), np.float32(0))
        alone = inputs(batch._replace(cost_advantage=costs[:, k or 0]))._replace(constraint=own)
        expected, _ = one(Actor(params, ()), alone)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), actor.params, expected.params)


def test_values_and_cost_to_go_have_the_axis_of_the_costs():
    learner = made("pid-lag-twin", LIMITS)
    critics, batch = learner.init(3, jax.random.key(0)).critics, sample()
    each = [
        np.asarray(values(jax.tree.map(lambda leaf, i=i: leaf[np.array([0, i])], critics), batch.observations)[1])
        for i in range(1, 5)
    ]
    v_c = values(critics, batch.observations, 2)[1]
    np.testing.assert_allclose(v_c[..., 0], np.maximum(each[0], each[1]), rtol=1e-6)
    np.testing.assert_allclose(v_c[..., 1], np.maximum(each[2], each[3]), rtol=1e-6)
    seen = batch.observations, batch.next_observations
    ends = batch.terminated, batch.ended
    found = cost_to_go(critics, *seen, batch.costs, ends, batch.normalise, gamma=0.9)
    for k, rows in enumerate(([0, 1, 2], [0, 3, 4])):
        own = jax.tree.map(lambda leaf, rows=rows: leaf[np.array(rows)], critics)
        expected = cost_to_go(own, *seen, batch.costs[..., k], ends, batch.normalise, gamma=0.9)
        np.testing.assert_allclose(found[..., k], expected, rtol=1e-5)


def test_a_limit_is_that_of_the_cost_that_is_looked_at():
    config = configure("pid-lag", "E", cost_limit=LIMITS)
    assert dataclasses.replace(config, cost_limit=4.0).limit == 4.0
    with pytest.raises(AssertionError):
        _ = config.limit
