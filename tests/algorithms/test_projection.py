"""CUP's projection: objective and gradient against NumPy and finite differences."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.projection import price_of_cost, projection_loss, projection_step
from flashbulb.algorithms.proximal import Actor, actor_optimiser
from flashbulb.config import AscentConfig, ProximalConfig
from tests.algorithms.actor_batches import POLICY, divergence, example, log_density, moved, numerical_gradient


def loss_by_loop(params, halfway, evidence, price):
    ratio = np.exp(log_density(params, evidence.observations, evidence.actions) - evidence.log_prob)
    terms = divergence(params, halfway, evidence.observations) + price * ratio * evidence.cost_advantage
    assert terms.shape == evidence.cost_advantage.shape
    return terms.mean()


def test_loss_and_gradient():
    params, evidence = example()
    halfway = moved(params, seed=1)
    here = moved(params, seed=2)
    ours, gradient = jax.value_and_grad(lambda p: projection_loss(POLICY, p, halfway, evidence, 1.7))(here)
    assert float(ours) == pytest.approx(loss_by_loop(here, halfway, evidence, 1.7), rel=1e-4)
    expected = numerical_gradient(lambda p: loss_by_loop(p, halfway, evidence, 1.7), here)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)


def test_each_state_meets_only_its_own_cost():
    """Were some term (B, 1), the sum would pair every state with every other."""
    params, evidence = example(states=47)
    loss = jax.make_jaxpr(lambda p: projection_loss(POLICY, p, params, evidence, 1.0))(params)
    shapes = {variable.aval.shape for equation in loss.eqns for variable in equation.outvars}
    assert (47,) in shapes
    assert (47, 47) not in shapes
    here = moved(params, by=0.3)
    shuffled = evidence._replace(cost_advantage=evidence.cost_advantage[::-1].copy())
    losses = [float(projection_loss(POLICY, here, params, e, 1.0)) for e in (evidence, shuffled)]
    assert abs(losses[0] - losses[1]) > 1e-3


def test_price():
    assert float(price_of_cost(2.0, 0.99, 0.95)) == pytest.approx(2 * (1 - 0.9405) / 0.01)


def test_the_projection_lowers_cost_and_a_price_of_zero_keeps_the_policy():
    params, evidence = example(200)
    config = ProximalConfig(passes=10, minibatch=50, kl=1.0)
    actor = Actor(params, actor_optimiser(config).init(params))

    @jax.jit
    def project(actor, evidence, price):
        return projection_step(POLICY, actor, evidence, price, 0.003, jax.random.key(0), config)

    def cost_after(price):
        new = jax.tree.map(np.asarray, project(actor, evidence, np.float32(price)).actor.params)
        ratio = np.exp(log_density(new, evidence.observations, evidence.actions) - evidence.log_prob)
        kl = divergence(new, params, evidence.observations).mean()
        return (ratio * evidence.cost_advantage).mean(), kl

    free, cheap, dear = cost_after(0.0), cost_after(1.0), cost_after(10.0)
    assert free[1] < 1e-6
    assert dear[0] < cheap[0] < free[0] - 0.01


def test_the_multiplier_may_outweigh_small_cost_advantages():
    """With a cap of 2, cost advantages of 0.01 could never move the policy against KL."""
    assert AscentConfig().maximum * price_of_cost(1.0, 0.99, 0.95) * 0.01 > 1
