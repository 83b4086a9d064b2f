"""SB-TRPO: the mixing weight by brute force, and what the steps promise inside and outside the limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flashbulb.algorithms.actor import Actor
from flashbulb.algorithms.cpo import trpo_actor
from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.sb_trpo import mixing_weight, sb_trpo_actor, share_rule
from flashbulb.algorithms.trust_region import FROM_OUTSIDE, UNCONSTRAINED
from flashbulb.config import TrustRegionConfig
from tests.algorithms.quadratic_model import DELTA, RealPolicy, model_of, random_problem, solve_rule

GRID = np.linspace(0, 1, 20_001)


def steps_of(hessian, g, b):
    """The trust-region steps for reward alone and for cost alone."""
    h_g, h_b = np.linalg.solve(hessian, g), np.linalg.solve(hessian, b)
    return h_g * np.sqrt(2 * DELTA / (g @ h_g)), -h_b * np.sqrt(2 * DELTA / (b @ h_b))


def weight_by_search(hessian, g, b, share):
    """The smallest m on a grid whose step reduces the cost by `share` of the largest possible reduction."""
    x_r, x_c = steps_of(hessian, g, b)
    reductions = -((1 - GRID) * (b @ x_r) + GRID * (b @ x_c))
    return GRID[np.argmax(reductions >= share * -(b @ x_c) - 1e-12)]


@pytest.mark.parametrize("share", [0.25, 0.75, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_weight_is_the_smallest_that_reaches_the_share(seed, share):
    hessian, g, b, _ = random_problem(seed)
    with jax.enable_x64(True):
        ours = float(mixing_weight(model_of(hessian, g, b, 1.0), TrustRegionConfig(kl=DELTA, share=share)))
    assert ours == pytest.approx(weight_by_search(hessian, g, b, share), abs=1e-4)


def test_the_cases_above_are_mixed_ones_and_free_ones():
    weights = [weight_by_search(*random_problem(seed)[:3], 0.25) for seed in range(12)]
    assert min(weights) == 0.0
    assert any(0.1 < weight < 0.9 for weight in weights)


@pytest.mark.parametrize("align", [-1.0, 1.0])
def test_reward_and_cost_along_one_line(align):
    """With g = -b the reward's step is the cost's, and needs no mixing; with g = b it undoes it."""
    hessian, _, b, _ = random_problem(1)
    config = TrustRegionConfig(kl=DELTA, share=0.75)
    with jax.enable_x64(True):
        ours = float(mixing_weight(model_of(hessian, align * b, b, 1.0), config))
    assert ours == pytest.approx(0.0 if align < 0 else (0.75 + 1) / 2, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_step_outside_the_limit_has_the_share_and_stays_in_the_region(seed):
    hessian, g, b, _ = random_problem(seed)
    x = solve_rule(share_rule, hessian, g, b, 0.3, TrustRegionConfig(kl=DELTA, share=0.75))
    x_r, x_c = steps_of(hessian, g, b)
    assert b @ x <= 0.75 * (b @ x_c) * (1 - 1e-6)
    assert x @ hessian @ x / 2 <= DELTA * (1 + 1e-9)
    m = weight_by_search(hessian, g, b, 0.75)
    np.testing.assert_allclose(x, (1 - m) * x_r + m * x_c, atol=1e-3 * np.abs(x).max())


@pytest.mark.parametrize("c", [-0.3, 0.0])
def test_the_step_inside_the_limit_is_that_for_reward(c):
    hessian, g, b, _ = random_problem(2)
    x = solve_rule(share_rule, hessian, g, b, c, TrustRegionConfig(kl=DELTA))
    np.testing.assert_allclose(x, steps_of(hessian, g, b)[0], rtol=1e-9)


CONFIG = configure("sb-trpo", "E", trust_region={"kl": DELTA})


@pytest.fixture(scope="module")
def real():
    example = RealPolicy()
    return example, jax.jit(sb_trpo_actor(example.policy, CONFIG))


def test_far_inside_the_limit_it_is_trpo_on_a_real_policy(real):
    example, step = real
    ours, report = step(Actor(example.params, ()), example.inputs(-100.0))
    theirs, _ = jax.jit(trpo_actor(example.policy, CONFIG))(Actor(example.params, ()), example.inputs(0.0))
    assert int(report["cpo_case"]) == UNCONSTRAINED
    assert float(report["step_fraction"]) > 0
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_outside_the_limit_the_cost_of_a_real_policy_falls_though_the_reward_does(real):
    """What pays also costs here: a step that had to raise the reward would not be taken."""
    example, step = real
    new, report = step(Actor(example.params, ()), example.inputs(0.05))
    kl, gain, change = example.changes(new.params)
    assert int(report["cpo_case"]) == FROM_OUTSIDE
    assert float(report["step_fraction"]) > 0
    assert 0 < kl <= DELTA * (1 + 1e-4)
    assert change < 0
    assert gain < 0
    assert 0 < float(report["nu"]) < 1
    assert jnp.isfinite(report["lambda"])
