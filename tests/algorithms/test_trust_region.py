"""Fisher products, conjugate gradients and the line search against dense algebra and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.trust_region import Trial, fisher_product, flatten, line_search, solve
from flashbulb.config import PolicyConfig, TrustRegionConfig

OBSERVATIONS = spaces.Box(-np.inf, np.inf, (3,))


@pytest.fixture(params=[spaces.Box(-1, 1, (2,)), spaces.Discrete(3)], ids=["gaussian", "categorical"])
def problem(request):
    policy = policy_for(OBSERVATIONS, request.param)
    params = policy.init(jax.random.key(0), 3, PolicyConfig(hidden=(5, 4)))
    # a last layer of full size, so that the outputs differ between states
    params = jax.tree.map(lambda x: x + 0.3 * jax.random.normal(jax.random.key(1), x.shape), params)
    theta, unflatten = flatten(params)
    observations = jax.random.normal(jax.random.key(2), (40, 3))
    return policy, theta, lambda vector: policy.outputs(unflatten(vector), observations)


def dense_hessian(policy, theta, outputs_of):
    old = outputs_of(theta)
    return np.asarray(jax.jit(jax.hessian(lambda t: policy.kl(old, outputs_of(t)).mean()))(theta), np.float64)


def test_fisher_product_is_the_hessian_of_kl(problem):
    policy, theta, outputs_of = problem
    hessian = dense_hessian(policy, theta, outputs_of)
    product = jax.jit(fisher_product(outputs_of, policy.kl, theta))
    for seed in range(5):
        v = jax.random.normal(jax.random.key(seed), theta.shape)
        np.testing.assert_allclose(product(v), hessian @ np.asarray(v), rtol=2e-4, atol=2e-5)


def test_either_direction_of_kl_has_the_same_hessian(problem):
    """The paper writes D(pi || pi_k), TRPO D(pi_k || pi); the quadratic model does not care."""
    policy, theta, outputs_of = problem
    old = outputs_of(theta)
    other = jax.jit(jax.hessian(lambda t: policy.kl(outputs_of(t), old).mean()))(theta)
    np.testing.assert_allclose(dense_hessian(policy, theta, outputs_of), other, atol=2e-5)


def test_conjugate_gradients_solve_the_damped_system(problem):
    policy, theta, outputs_of = problem
    config = TrustRegionConfig(cg_iterations=200, damping=0.1)
    right = jax.random.normal(jax.random.key(3), theta.shape)
    expected = np.linalg.solve(dense_hessian(policy, theta, outputs_of) + 0.1 * np.eye(len(theta)), right)
    found = jax.jit(lambda x: solve(fisher_product(outputs_of, policy.kl, theta), x, config))(right)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)


def quadratic_trial(theta):
    return Trial(theta[0] ** 2, theta[0], -theta[0])


@pytest.mark.parametrize("bound", [1.0, 0.5, 0.04, 1e-3])
def test_line_search_takes_the_longest_acceptable_step(bound):
    config = TrustRegionConfig(search_steps=20, search_decay=0.8)
    found = line_search(quadratic_trial, lambda t: t.kl <= bound, jnp.zeros(1), jnp.ones(1), config)
    fractions = [0.8**i for i in range(20)]
    expected = next((f for f in fractions if f**2 <= bound), 0.0)
    assert float(found.fraction) == pytest.approx(expected, rel=1e-5)
    assert float(found.theta[0]) == pytest.approx(expected, rel=1e-5)


def test_the_step_is_taken_from_where_the_search_began():
    """From 3 towards 3 - 2: within 0.7 of the start after a share of 0.8^5 = 0.328 of it."""
    config, theta = TrustRegionConfig(search_steps=20, search_decay=0.8), jnp.array([3.0, 5.0])
    step = jnp.array([-2.0, 1.0])

    def trial(candidate):
        return Trial(jnp.abs(candidate[0] - 3.0), candidate[1], candidate[0])

    found = line_search(trial, lambda t: t.kl <= 0.7, theta, step, config)
    assert float(found.fraction) == pytest.approx(0.8**5, rel=1e-5)
    np.testing.assert_allclose(found.theta, [3 - 2 * 0.8**5, 5 + 0.8**5], rtol=1e-6)
    np.testing.assert_allclose(found.trial, [2 * 0.8**5, 5 + 0.8**5, 3 - 2 * 0.8**5], rtol=1e-6)


def test_a_search_that_fails_changes_nothing():
    config = TrustRegionConfig(search_steps=5)
    theta = jnp.array([0.7])
    found = line_search(quadratic_trial, lambda t: t.kl < -1, theta, jnp.ones(1), config)
    assert float(found.fraction) == 0.0
    assert found.theta.tolist() == theta.tolist()
    assert float(found.trial.kl) == 0.0


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_a_divergence_that_is_not_finite_shortens_the_step(bad):
    """Peers retry the same step, or keep the parameters of the failed one."""

    def trial(theta):
        return Trial(jnp.where(theta[0] > 0.6, bad, 0.0), jnp.zeros(()), jnp.zeros(()))

    found = line_search(trial, lambda t: t.kl <= 1, jnp.zeros(1), jnp.ones(1), TrustRegionConfig())
    assert float(found.fraction) == pytest.approx(0.8**3)
