"""What the learner does between its parts: step sizes, bound of the noise, scale of advantages, the larger margin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.algorithms import learner
from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.multipliers import pid_step
from flashbulb.algorithms.policy import Gaussian
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.batch import ActorBatch, Batch, EpisodeMeans
from flashbulb.normaliser import Normaliser

TIME, ENVS, LIMIT = 20, 4, 25.0
SMALL = {
    "policy": {"hidden": (3,)},
    "critic": {"hidden": (3,), "passes": 1},
    "proximal": {"passes": 1},
    "trust_region": {"cg_iterations": 2, "search_steps": 2},
}
POLICY = Gaussian(spaces.Box(-1, 1, (2,)))


def sample(cost=20.0, error=2.0, beta=0.0, intrinsic=0.0, seed=0):
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(2, TIME, ENVS, 3)).astype(np.float32)
    actions = rng.normal(size=(TIME, ENVS, 2)).astype(np.float32)
    rewards, costs = rng.normal(size=(2, TIME, ENVS)).astype(np.float32) * np.float32([[[3.0]], [[0.2]]])
    flags = np.zeros((2, TIME, ENVS), bool)
    means = EpisodeMeans(0.0, cost, 1000.0, False, error)
    c_i = np.full((TIME, ENVS), intrinsic, np.float32)
    samples = *observations, actions, rewards, costs, *flags
    return Batch(0, *samples, Normaliser.empty(3).frozen(), means=means, intrinsic=c_i, beta=np.float32(beta))


def made(name, **settings):
    merged = {part: SMALL.get(part, {}) | settings.pop(part, {}) for part in SMALL}
    config = configure(name, "E", cost_limit=LIMIT, **merged, **settings)
    parts = Learner(POLICY, get_algorithm(name), config)
    return parts, parts.init(3, jax.random.key(0))


@pytest.fixture
def rates(monkeypatch):
    """The step sizes that `fit` was given."""
    seen = []

    def spy(critics, observations, targets, rng, learning_rate, *rest):
        seen.append(float(learning_rate))
        return critics, np.zeros(2)

    monkeypatch.setattr(learner, "fit", spy)
    return seen


def still(parts, log_std=None):
    """The learner with an actor that stands still, or that sets its noise: no compilation of a step."""

    def improve(actor, inputs):
        params = actor.params if log_std is None else actor.params._replace(log_std=jnp.asarray(log_std))
        return type(actor)(params, actor.optimiser), {"rate": inputs.learning_rate}

    parts._improve = improve
    return parts


def filled(batch):
    """With what `update` hands to the spies."""
    actor = ActorBatch(np.zeros((4, 3), np.float32), None, None, None, None)
    return batch._replace(actor=actor, critic_targets=np.zeros((2, 4), np.float32))


@pytest.mark.parametrize(("decay", "expected"), [(True, [3e-4, 1.5e-4, 3e-5]), (False, [3e-4] * 3)])
def test_the_critics_step_size_decays_or_stays(decay, expected, rates):
    parts, state = made("ppo", critic={"decay": decay})
    actor_rates = []
    for progress in (0.0, 0.5, 0.9):
        _, metrics = still(parts).update(state, filled(sample()), progress, jax.random.key(1))
        actor_rates.append(float(metrics["rate"]))
    assert rates == pytest.approx(expected)
    assert actor_rates == pytest.approx([3e-4, 1.5e-4, 3e-5])  # the actor's decays either way


def cost_advantage(name, kind):
    parts, state = made(name, cost_advantage=kind)
    return np.asarray(parts.estimate(state, sample())[1].actor.cost_advantage)


@pytest.mark.parametrize("name", ["pid-lag", "ppo-lag"])
def test_standardised_cost_advantages_have_unit_variance_where_a_multiplier_weighs_them(name):
    centred, standardised = cost_advantage(name, "centred"), cost_advantage(name, "standardised")
    assert centred.mean() == pytest.approx(0, abs=1e-5)
    assert not 0.7 < centred.std() < 1.4
    np.testing.assert_allclose(standardised, centred / centred.std(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["cpo", "c-trpo"])
def test_cpos_stay_in_the_units_of_its_constraint(name):
    np.testing.assert_array_equal(cost_advantage(name, "standardised"), cost_advantage(name, "centred"))


# A margin with z = 2 that has been reached: at a cost below the limit z falls by rate * violations.
VIOLATIONS = 0.1
MARGIN = {"start": "zero", "rate": 0.5, "smooth": 0.0, "noise": "sampling"}
Z = 2.0 - 0.5 * VIOLATIONS


@pytest.mark.parametrize(("intrinsic", "share"), [(0.02, 1.0), (0.4, 1.0), (0.4, 0.5)])
def test_the_larger_of_intrinsic_return_and_margin_counts(intrinsic, share):
    """constraint = cost + max(share * I, u) - limit; I = beta c^I / (1 - gamma), u = z * standard error."""
    balance = {"margin": share}
    parts, state = made("mice-cpo", violations=VIOLATIONS, margin=MARGIN, balance=balance, cost_gamma=0.9)
    state = state._replace(margin=state.margin._replace(z=jnp.float32(2.0), reached=jnp.float32(1)))
    _, batch, metrics = parts.estimate(state, sample(cost=20.0, error=1.5, beta=2.0, intrinsic=intrinsic))
    i, u = 2.0 * intrinsic / 0.1, Z * 1.5
    expected = 20.0 + max(share * i, u) - LIMIT
    assert float(metrics["intrinsic_return"]) == pytest.approx(i, rel=1e-4)
    assert float(metrics["margin"]) == pytest.approx(u, rel=1e-4)
    assert float(metrics["constraint"]) == pytest.approx(expected, abs=1e-4)
    assert float(batch.constraint.excess) == pytest.approx(expected, abs=1e-4)
    assert float(batch.constraint.c) == pytest.approx(expected / 1000, abs=1e-6)


def test_no_step_takes_the_noise_below_its_bound(rates):
    parts, state = made("trpo-pid", policy={"least_std": 0.2})
    state, _ = still(parts, np.log([0.1, 0.3])).update(state, filled(sample()), 0.0, jax.random.key(1))
    np.testing.assert_allclose(np.exp(state.policy.log_std), [0.2, 0.3], rtol=1e-6)
    parts, state = made("trpo-pid", policy={"least_std": 0.0})
    state, _ = still(parts, np.log([0.1, 0.3])).update(state, filled(sample()), 0.0, jax.random.key(1))
    np.testing.assert_allclose(np.exp(state.policy.log_std), [0.1, 0.3], rtol=1e-6)


def test_without_a_target_there_is_no_margin():
    parts, state = made("cpo")
    _, _, metrics = parts.estimate(state, sample(cost=20.0, error=1.5))
    assert state.margin == ()
    assert "margin" not in metrics
    assert float(metrics["constraint"]) == pytest.approx(-5.0)


def test_a_pid_controls_the_cost_with_its_margin():
    """As if the cost were higher by u; what counts as a violation is the cost itself."""
    parts, state = made("trpo-pid", violations=VIOLATIONS, margin=MARGIN)
    state = state._replace(margin=state.margin._replace(z=jnp.float32(2.0), reached=jnp.float32(1)))
    after, batch, metrics = parts.estimate(state, sample(cost=24.0, error=1.5))
    expected = pid_step(state.multiplier, jnp.float32(24.0 + Z * 1.5), LIMIT, parts.config.pid)[1]
    assert float(expected) > 0.1
    assert float(batch.constraint.multiplier) == pytest.approx(float(expected), rel=1e-4)
    assert float(after.margin.z) == pytest.approx(Z)
    assert float(metrics["margin_z"]) == pytest.approx(Z)


def test_the_integral_of_the_excess_reaches_the_step_and_no_one_else():
    parts, state = made("cpo", integral={"gain": 0.1})
    for done in (1, 2):
        state, batch, metrics = parts.estimate(state, sample(cost=35.0))
        assert float(metrics["integral"]) == pytest.approx(done * 1.0)
        assert float(batch.constraint.c) == pytest.approx((10.0 + done * 1.0) / 1000)
        assert float(batch.constraint.excess) == pytest.approx(10.0)
    parts, state = made("trpo-pid", integral={"gain": 0.1})  # has an integral of its own
    assert state.integral == ()


@pytest.mark.parametrize(("case", "saturated"), [(0, 1.0), (1, 0.0), (2, 0.0), (3, 0.0)])
def test_a_step_for_cost_alone_saturates_the_integral(case, saturated, rates):
    parts, state = made("cpo", integral={"gain": 0.1})
    parts._improve = lambda actor, inputs: (actor, {"cpo_case": jnp.asarray(case)})
    state, _ = parts.update(state, filled(sample()), 0.0, jax.random.key(1))
    assert float(state.integral.saturated) == saturated
