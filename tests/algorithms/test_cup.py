"""CUP's projection: objective and gradient against NumPy and finite differences."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.actor import Actor
from flashbulb.algorithms.cup import cost_weight, cup_actor, cup_on_host, projection_loss, projection_step
from flashbulb.algorithms.proximal import actor_optimiser
from flashbulb.algorithms.registry import configure
from flashbulb.config import AscentConfig, ProximalConfig
from tests.algorithms.actor_batches import POLICY, divergence, example, inputs, log_density, moved, numerical_gradient


def loss_by_loop(params, halfway, batch, weight):
    ratio = np.exp(log_density(params, batch.observations, batch.actions) - batch.log_prob)
    terms = divergence(params, halfway, batch.observations) + weight * ratio * batch.cost_advantage
    assert terms.shape == batch.cost_advantage.shape
    return terms.mean()


def test_loss_and_gradient():
    params, batch = example()
    halfway = moved(params, seed=1)
    here = moved(params, seed=2)
    ours, gradient = jax.value_and_grad(lambda p: projection_loss(POLICY, p, halfway, batch, 1.7))(here)
    assert float(ours) == pytest.approx(loss_by_loop(here, halfway, batch, 1.7), rel=1e-4)
    expected = numerical_gradient(lambda p: loss_by_loop(p, halfway, batch, 1.7), here)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)


def test_each_state_meets_only_its_own_cost():
    """Were some term (B, 1), the sum would pair every state with every other."""
    params, batch = example(states=47)
    loss = jax.make_jaxpr(lambda p: projection_loss(POLICY, p, params, batch, 1.0))(params)
    shapes = {variable.aval.shape for equation in loss.eqns for variable in equation.outvars}
    assert (47,) in shapes
    assert (47, 47) not in shapes
    here = moved(params, by=0.3)
    shuffled = batch._replace(cost_advantage=batch.cost_advantage[::-1].copy())
    losses = [float(projection_loss(POLICY, here, params, e, 1.0)) for e in (batch, shuffled)]
    assert abs(losses[0] - losses[1]) > 1e-3


def test_cost_weight():
    assert float(cost_weight(2.0, 0.99, 0.95)) == pytest.approx(2 * (1 - 0.9405) / 0.01)


def test_the_projection_lowers_cost_and_a_price_of_zero_keeps_the_policy():
    params, batch = example(200)
    config = ProximalConfig(passes=10, minibatch=50, kl=1.0)
    actor = Actor(params, actor_optimiser(config).init(params))

    @jax.jit
    def project(actor, batch, weight):
        return projection_step(POLICY, actor, inputs(batch, rate=0.003), weight, config)

    def cost_after(weight):
        new = jax.tree.map(np.asarray, project(actor, batch, np.float32(weight)).actor.params)
        ratio = np.exp(log_density(new, batch.observations, batch.actions) - batch.log_prob)
        kl = divergence(new, params, batch.observations).mean()
        return (ratio * batch.cost_advantage).mean(), kl

    free, cheap, dear = cost_after(0.0), cost_after(1.0), cost_after(10.0)
    assert free[1] < 1e-6
    assert dear[0] < cheap[0] < free[0] - 0.01


def test_the_multiplier_may_outweigh_small_cost_advantages():
    """With a cap of 2, cost advantages of 0.01 could never move the policy against KL."""
    assert AscentConfig().maximum * cost_weight(1.0, 0.99, 0.95) * 0.01 > 1


def moments(optimiser):
    """Adam's second moments, largest."""
    return max(float(np.max(leaf)) for leaf in jax.tree.leaves(optimiser[1].nu))


def test_improvement_and_projection_have_moments_of_their_own():
    """After iterations with a large weight of cost, the improvement gains as much as that of an actor which never
    projected. With moments in common its gradients, divided by the root mean square of the projection's, would not."""
    params, batch = example(200)
    config = configure("cup", "E", proximal={"passes": 2, "minibatch": 50, "kl": 10.0, "max_grad_norm": 1e6})
    step = jax.jit(cup_actor(POLICY, config))
    fresh = actor_optimiser(config.proximal).init(params)

    def iterate(lam, times, optimiser):
        for _ in range(times):
            actor, _ = step(Actor(params, optimiser), inputs(batch, lam=lam, rate=1e-3))  # the same policy each time
            optimiser = actor.optimiser
        return optimiser

    def gain(optimiser):
        """What an iteration without a weight of cost gains."""
        actor, _ = step(Actor(params, optimiser), inputs(batch, lam=0.0, rate=1e-3))
        new = jax.tree.map(np.asarray, actor.params)
        ratio = np.exp(log_density(new, batch.observations, batch.actions) - batch.log_prob)
        return ((ratio - 1) * batch.reward_advantage).mean()

    free, costly = iterate(0.0, 3, (fresh, fresh)), iterate(100.0, 3, (fresh, fresh))
    assert moments(costly[1]) > 1e3 * moments(costly[0])
    for a, b in zip(jax.tree.leaves(costly[0]), jax.tree.leaves(free[0]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert gain((costly[0], fresh)) == pytest.approx(gain((free[0], fresh)), rel=1e-4)
    assert gain((costly[1], fresh)) < 0.5 * gain((free[0], fresh))  # what moments in common would make of it


@pytest.mark.parametrize("backend", ["compiled", "optax"])
def test_without_a_weight_of_cost_the_projection_leaves_policy_and_moments(backend):
    """The moments of earlier projections would move a policy that has nothing to be projected for."""
    params, batch = example(200)
    config = configure("cup", "E", proximal={"passes": 3, "minibatch": 50, "kl": 10.0})
    step = cup_on_host(POLICY, config).run if backend == "compiled" else jax.jit(cup_actor(POLICY, config))
    fresh = jax.tree.map(np.asarray, actor_optimiser(config.proximal).init(params))
    costly = jax.tree.map(np.asarray, step(Actor(params, (fresh, fresh)), inputs(batch, lam=5.0, rate=1e-3))[0])
    assert moments(costly.optimiser[1]) > 0
    (moved_on, metrics), (plain, _) = (
        step(Actor(params, (fresh, projecting)), inputs(batch, lam=0.0, rate=1e-3))
        for projecting in (costly.optimiser[1], fresh)
    )
    assert int(metrics["projection_passes"]) == 0
    assert int(metrics["actor_passes"]) == 3
    for a, b in zip(jax.tree.leaves(moved_on.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(jax.tree.leaves(moved_on.optimiser[1]), jax.tree.leaves(costly.optimiser[1]), strict=True):
        np.testing.assert_array_equal(a, b)
