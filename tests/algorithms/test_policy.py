"""Policies against SciPy's distributions and plain sampling."""

import jax
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats
from scipy.special import softmax

from flashbulb.algorithms.policy import GaussianOutputs, policy_for
from flashbulb.config import PolicyConfig
from flashbulb.errors import UsageError

OBSERVATIONS = spaces.Box(-np.inf, np.inf, (3,))


def gaussian(shape=(2,), low=-1.0, high=1.0):
    return policy_for(OBSERVATIONS, spaces.Box(low, high, shape))


def test_gaussian_density_divergence_and_entropy():
    rng = np.random.default_rng(0)
    mean, log_std = rng.standard_normal((7, 2)), np.array([-0.3, 0.4])
    other, other_std = rng.standard_normal((7, 2)), np.array([0.2, -0.1])
    actions = rng.standard_normal((7, 2))
    p, q = GaussianOutputs(mean, log_std), GaussianOutputs(other, other_std)
    expected = stats.norm.logpdf(actions, mean, np.exp(log_std)).sum(-1)
    np.testing.assert_allclose(gaussian().log_prob(p, actions), expected, rtol=1e-5)
    np.testing.assert_allclose(gaussian().entropy(p), stats.norm(0, np.exp(log_std)).entropy().sum(), rtol=1e-5)
    # D_KL(p || q) by quadrature in each dimension, summed over dimensions, not averaged
    x = np.linspace(-12, 12, 20001)
    for row in range(7):
        total = 0.0
        for d in range(2):
            density = stats.norm.pdf(x, mean[row, d], np.exp(log_std[d]))
            difference = stats.norm.logpdf(x, mean[row, d], np.exp(log_std[d])) - stats.norm.logpdf(
                x, other[row, d], np.exp(other_std[d])
            )
            total += np.trapezoid(density * difference, x)
        assert float(gaussian().kl(p, q)[row]) == pytest.approx(total, rel=1e-4)


def test_categorical_density_divergence_and_entropy():
    policy = policy_for(OBSERVATIONS, spaces.Discrete(4))
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(4), 6)
    actions = rng.integers(0, 4, 6)
    shift = rng.standard_normal((6, 1))  # logits mean the same when all are shifted
    found = policy.log_prob(np.log(p) + shift, actions)
    np.testing.assert_allclose(found, np.log(p[np.arange(6), actions]), rtol=1e-4)
    np.testing.assert_allclose(policy.kl(np.log(p), np.log(q)), stats.entropy(p, q, axis=1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(policy.entropy(np.log(p)), stats.entropy(p, axis=1), rtol=1e-5)


@pytest.mark.parametrize("space", [spaces.Box(-1, 1, (2,)), spaces.Discrete(3)])
def test_actions_follow_the_density_that_learning_assumes(space):
    policy = policy_for(OBSERVATIONS, space)
    params = policy.init(jax.random.key(0), 3, PolicyConfig(hidden=(4,)))
    params = jax.tree.map(lambda x: np.asarray(x + 0.5 * jax.random.normal(jax.random.key(5), x.shape)), params)
    observation = np.array([0.3, -1.0, 0.5], np.float32)
    noise = np.asarray(policy.noise(jax.random.key(1), (20_000,)))
    actions = policy.act(params, np.tile(observation, (20_000, 1)), noise)
    outputs = policy.outputs(params, observation)
    if isinstance(space, spaces.Discrete):
        counts = np.bincount(actions, minlength=3)
        assert stats.chisquare(counts, 20_000 * softmax(np.asarray(outputs, np.float64))).pvalue > 1e-3
    else:
        for d in range(2):
            law = stats.norm(float(outputs.mean[d]), float(np.exp(outputs.log_std[d])))
            assert stats.kstest(actions[:, d], law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("actions", "expected"), [(1, 0.5), (2, 0.5), (6, 0.5 / np.sqrt(3)), (8, 0.25)])
def test_shared_noise_has_the_variance_of_two_actions(actions, expected):
    """Of one action it is that of the action itself: there is nothing to share."""
    config = PolicyConfig(hidden=(4,), initial_log_std=np.log(0.5), share_noise=True)
    params = gaussian((actions,)).init(jax.random.key(0), 3, config)
    np.testing.assert_allclose(np.exp(params.log_std), np.full(actions, expected), rtol=1e-6)
    plain = gaussian((actions,)).init(jax.random.key(0), 3, PolicyConfig(hidden=(4,)))
    np.testing.assert_array_equal(plain.log_std, np.zeros(actions))


def test_actions_reach_the_environment_inside_its_bounds():
    policy = gaussian(low=-0.4, high=0.4)
    np.testing.assert_allclose(policy.to_env(np.array([[5.0, -5.0], [0.5, 0.0]])), [[0.4, -0.4], [0.2, 0.0]], rtol=1e-6)


def test_unbounded_actions_pass_unchanged():
    policy = gaussian(low=-np.inf, high=np.inf)
    np.testing.assert_allclose(policy.to_env(np.array([[5.0, -5.0]])), [[5.0, -5.0]])


def test_discrete_actions_that_do_not_start_at_zero():
    assert policy_for(OBSERVATIONS, spaces.Discrete(3, start=5)).to_env(np.array([0, 2])).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("observations", "actions"),
    [
        (spaces.Dict({"a": OBSERVATIONS}), spaces.Discrete(2)),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), spaces.Discrete(2)),
        (OBSERVATIONS, spaces.MultiBinary(3)),
    ],
)
def test_spaces_that_do_not_fit_are_refused_in_one_sentence(observations, actions):
    with pytest.raises(UsageError, match=r"^env: .* not supported.*\.$"):
        policy_for(observations, actions)
