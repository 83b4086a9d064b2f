"""C-TRPO: its closed form against a numerical maximiser, its divergence against its definition, its hysteresis."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from flashbulb.algorithms.actor import Actor
from flashbulb.algorithms.c_trpo import barrier_divergence, barrier_rule, c_trpo_actor, still_recovering
from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.trust_region import FROM_INSIDE, RECOVER, FullStep, trust_region_step
from flashbulb.config import TrustRegionConfig
from tests.algorithms.quadratic_model import DELTA, RealPolicy, random_problem, solve_rule

LIMIT = 25.0
INSIDE = partial(barrier_rule, recovering=jnp.asarray(False))


def best_step(g, metric):
    """max g.x in x.metric.x / 2 <= DELTA, by SLSQP in the coordinates of the plain ball."""
    root = np.linalg.cholesky(metric)
    g_w = np.linalg.solve(root, g)
    region = {"type": "ineq", "fun": lambda y: 1 - y @ y, "jac": lambda y: -2 * y}
    start = np.full(len(g), 0.1)
    found = minimize(lambda y: -g_w @ y, start, jac=lambda y: -g_w, constraints=[region], method="SLSQP",
                     options={"ftol": 1e-14, "maxiter": 500})  # fmt: skip
    assert found.x @ found.x <= 1 + 1e-7
    return np.linalg.solve(root.T, found.x * np.sqrt(2 * DELTA))


@pytest.mark.parametrize("seed", range(30))
def test_closed_form_agrees_with_a_numerical_maximiser(seed):
    hessian, g, b, rng = random_problem(seed)
    barrier, slack = 10 ** rng.uniform(-1, 3), 10 ** rng.uniform(-3, 0)
    metric = hessian + barrier / slack * np.outer(b, b)
    x = solve_rule(INSIDE, hessian, g, b, -slack, TrustRegionConfig(kl=DELTA, barrier=barrier))
    assert x @ metric @ x / 2 == pytest.approx(DELTA, rel=1e-6)
    expected = best_step(g, metric)
    assert g @ x == pytest.approx(g @ expected, rel=1e-5)
    np.testing.assert_allclose(x, expected, atol=1e-3 * np.abs(expected).max())


def test_far_from_the_limit_it_is_trpos_step_and_near_it_the_cost_stands_still():
    hessian, g, b, _ = random_problem(3)
    config = TrustRegionConfig(kl=DELTA, barrier=1.0)
    far, near = (solve_rule(INSIDE, hessian, g, b, c, config) for c in (-1e6, -1e-6))
    h_g = np.linalg.solve(hessian, g)
    np.testing.assert_allclose(far, h_g * np.sqrt(2 * DELTA / (g @ h_g)), rtol=1e-4)
    assert abs(b @ near) < 1e-4 * abs(b @ far)


def test_when_recovering_it_is_the_steepest_descent_in_cost():
    hessian, g, b, _ = random_problem(4)
    rule = partial(barrier_rule, recovering=jnp.asarray(True))
    x = solve_rule(rule, hessian, g, b, 0.1, TrustRegionConfig(kl=DELTA))
    assert x @ hessian @ x / 2 == pytest.approx(DELTA)
    directions = np.random.default_rng(0).standard_normal((2000, 4))
    scale = np.sqrt(2 * DELTA / np.einsum("ij,jk,ik->i", directions, hessian, directions))
    assert b @ x <= (directions @ b * scale).min() + 1e-12


def bregman(a, slack, barrier):
    """The Bregman divergence of phi(x) = x log x between what is left of the slack after the step and before it."""

    def phi(x):
        return x * np.log(x)

    after, before = slack - a, slack
    return barrier * (phi(after) - phi(before) - (np.log(before) + 1) * (after - before))


@pytest.mark.parametrize("slack", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("share", [-5.0, -1.0, -0.1, 0.0, 0.1, 0.9, 0.999])
def test_the_divergence_is_its_definition(slack, share):
    with jax.enable_x64(True):
        ours = float(barrier_divergence(jnp.asarray(share * slack), jnp.asarray(slack), 7.0))
    assert ours == pytest.approx(bregman(share * slack, slack, 7.0), rel=1e-9, abs=1e-12)


def test_the_curvature_of_the_divergence_at_zero_is_what_the_rule_takes_for_it():
    h = 1e-4
    for slack, barrier in ((0.5, 3.0), (2.0, 1.0)):
        with jax.enable_x64(True):
            above, here, below = (
                float(barrier_divergence(jnp.asarray(a), jnp.asarray(slack), barrier)) for a in (h, 0.0, -h)
            )
        assert here == 0.0
        assert (above - below) / (2 * h) == pytest.approx(0.0, abs=1e-6)
        assert (above - 2 * here + below) / h**2 == pytest.approx(barrier / slack, rel=1e-4)


@pytest.mark.parametrize("change", [0.3, 0.31, 5.0])
def test_the_divergence_is_infinite_from_the_limit_on(change):
    assert np.isinf(float(barrier_divergence(jnp.float32(change), jnp.float32(0.3), 1e-3)))


def test_recovery_begins_above_the_limit_and_ends_well_below_it():
    """Limit 25, hysteresis 0.8: it begins above 25 and ends at 20."""
    recovering, seen = jnp.asarray(False), []
    for cost in (19, 21, 24.9, 25, 25.1, 24, 20.1, 20.0, 21, 24, 26, 19, 24):
        recovering = still_recovering(recovering, jnp.float32(cost - LIMIT), LIMIT, 0.8)
        seen.append(int(recovering))
    assert seen == [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0]


@pytest.fixture(scope="module")
def real():
    example = RealPolicy()
    config = configure("c-trpo", "E", cost_limit=LIMIT, trust_region={"kl": DELTA, "barrier": 1.0})
    return example, config, jax.jit(c_trpo_actor(example.policy, config))


@pytest.mark.parametrize("c", [-0.3, -0.03, -0.003])
def test_an_accepted_step_keeps_the_divergence_of_its_region(real, c):
    example, config, step = real
    new, report = step(Actor(example.params, jnp.asarray(False)), example.inputs(c))
    kl, gain, change = example.changes(new.params)
    assert float(report["step_fraction"]) > 0
    assert int(report["cpo_case"]) == FROM_INSIDE
    assert not bool(new.optimiser)
    assert kl + bregman(change, -c, config.trust_region.barrier) <= DELTA * (1 + 1e-4)
    assert gain > 0
    assert change < -c


def test_the_divergence_counts_in_the_line_search(real):
    """TRPO's full step, which the barrier's quadratic model had no part in, is shortened until KL + divergence fit."""
    example, config, _ = real
    c, barrier = -0.3, 10.0

    def trpo_rule(model, config, counts):
        lam = jnp.sqrt(model.q / (2 * config.kl))
        extra = (lambda change: barrier_divergence(change, -model.c, barrier)) if counts else jnp.zeros_like
        return FullStep(model.h_g / lam, jnp.asarray(FROM_INSIDE), lam, lam, extra)

    def step(counts):
        rule = partial(trpo_rule, counts=counts)
        compiled = jax.jit(partial(trust_region_step, example.policy, rule=rule, config=config.trust_region))
        new, _ = compiled(example.params, example.batch, jnp.float32(c))
        kl, _, change = example.changes(new)
        return kl + bregman(change, -c, barrier)

    assert step(counts=False) > DELTA * 1.5
    assert 0 < step(counts=True) <= DELTA * (1 + 1e-4)


def test_a_real_policy_recovers_with_hysteresis(real):
    example, _, step = real
    states, cases = [], []
    actor = Actor(example.params, jnp.asarray(False))
    for excess in (-1.0, 3.0, -3.0, -6.0, -3.0):
        after, report = step(actor, example.inputs(excess / 1000, excess))
        kl, _, change = example.changes(after.params)
        assert 0 < kl <= DELTA * (1 + 1e-4)
        actor = Actor(example.params, after.optimiser)  # the same policy each time; only its optimiser goes on
        states.append(int(after.optimiser))
        cases.append(int(report["cpo_case"]))
        if states[-1]:
            assert change < 0
    assert states == [0, 1, 1, 0, 0]
    assert cases == [FROM_INSIDE, RECOVER, RECOVER, FROM_INSIDE, FROM_INSIDE]


def test_an_integral_that_says_outside_lowers_the_cost(real):
    """With integral action c may be positive where the excess is not. There is no slack to divide the barrier by, and a
    step that had to keep within it would hardly move."""
    example, _, _ = real
    step = c_trpo_actor(example.policy, configure("c-trpo", "E", trust_region={"kl": DELTA}))
    new, report = jax.jit(step)(Actor(example.params, jnp.asarray(False)), example.inputs(0.01, excess=-1.0))
    assert int(report["cpo_case"]) == RECOVER
    assert bool(new.optimiser)
    assert example.changes(new.params)[2] < -0.1
