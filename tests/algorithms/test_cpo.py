"""CPO's closed form against a numerical solver, in every case; the step it takes on a real policy."""

from functools import partial

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy.optimize import minimize

from flashbulb.algorithms import trust_region
from flashbulb.algorithms.actor import Actor
from flashbulb.algorithms.cpo import cpo_actor, cpo_rule, primal_step, solve_dual
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.trust_region import FROM_INSIDE, FROM_OUTSIDE, RECOVER, UNCONSTRAINED, trust_region_step
from flashbulb.batch import ActorBatch
from flashbulb.config import PolicyConfig, TrustRegionConfig
from tests.algorithms.quadratic_model import DELTA, RealPolicy, random_problem


@partial(jax.jit, static_argnames="recover")
def compiled(q, r, s, c, h_g, h_b, recover):
    config = TrustRegionConfig(kl=DELTA, recover=recover)
    dual = solve_dual(q, r, s, c, config)
    return dual.case, primal_step(dual, h_g, h_b, s, config)


def closed_form(hessian, g, b, c, recover):
    h_g, h_b = np.linalg.solve(hessian, g), np.linalg.solve(hessian, b)
    with jax.enable_x64(True):
        case, step = compiled(g @ h_g, g @ h_b, b @ h_b, c, h_g, h_b, recover)
    return int(case), np.asarray(step)


def numerical(hessian, g, b, c):
    """max g.x over the intersection, by SLSQP from several starts in whitened coordinates; None if it is empty."""
    root = np.linalg.cholesky(hessian)
    g_w, b_w = np.linalg.solve(root, g), np.linalg.solve(root, b)  # x = root^-T y, |y|^2 <= 2 delta
    radius = np.sqrt(2 * DELTA)
    if c - radius * np.linalg.norm(b_w) > 0:
        return None
    constraints = [
        {"type": "ineq", "fun": lambda y: 1 - y @ y, "jac": lambda y: -2 * y},
        {"type": "ineq", "fun": lambda y: -(c / radius + b_w @ y), "jac": lambda y: -b_w},
    ]
    inside = -b_w / np.linalg.norm(b_w) * 0.999
    best = None
    for start in (inside, inside * 0.5, np.zeros(len(g)), g_w / np.linalg.norm(g_w)):
        found = minimize(
            lambda y: -g_w @ y, start, jac=lambda y: -g_w, constraints=constraints, method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        feasible = found.x @ found.x <= 1 + 1e-7 and c / radius + b_w @ found.x <= 1e-7
        if feasible and (best is None or g_w @ found.x > g_w @ best):
            best = found.x
    assert best is not None
    return np.linalg.solve(root.T, best * radius)


@pytest.mark.parametrize("seed", range(60))
def test_closed_form_agrees_with_a_numerical_solver(seed):
    hessian, g, b, rng = random_problem(seed)
    reach = np.sqrt(2 * DELTA * (b @ np.linalg.solve(hessian, b)))  # the most that c can be mended by
    c = float(rng.uniform(-1.5, 1.5) * reach)
    case, x = closed_form(hessian, g, b, c, "infeasible")
    expected = numerical(hessian, g, b, c)
    if c > reach:
        assert case == RECOVER
        assert expected is None
        return
    assert case == (UNCONSTRAINED if c < -reach else FROM_INSIDE if c <= 0 else FROM_OUTSIDE)
    assert 0.5 * x @ hessian @ x <= DELTA * (1 + 1e-6)
    assert c + b @ x <= 1e-7
    assert g @ x == pytest.approx(g @ expected, rel=1e-5, abs=1e-8)


def test_all_cases_occur_above():
    seen = set()
    for seed in range(60):
        hessian, g, b, rng = random_problem(seed)
        c = float(rng.uniform(-1.5, 1.5) * np.sqrt(2 * DELTA * (b @ np.linalg.solve(hessian, b))))
        seen.add(closed_form(hessian, g, b, c, "infeasible")[0])
    assert seen == {RECOVER, FROM_OUTSIDE, FROM_INSIDE, UNCONSTRAINED}


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_limit_met_exactly(sign):
    """c = 0: the constraint bites if and only if reward and cost point the same way."""
    hessian, g, b, _ = random_problem(3)
    b = sign * np.sign(g @ np.linalg.solve(hessian, b)) * b
    _, x = closed_form(hessian, g, b, 0.0, "infeasible")
    assert g @ x == pytest.approx(g @ numerical(hessian, g, b, 0.0), rel=1e-5)


def test_a_limit_met_exactly_with_reward_and_cost_at_right_angles():
    """c = 0 and r = 0: the constraint is met by the reward step itself."""
    _, x = closed_form(np.eye(2), np.array([2.0, 0.0]), np.array([0.0, 3.0]), 0.0, "infeasible")
    np.testing.assert_allclose(x, [np.sqrt(2 * DELTA), 0.0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_step_does_not_depend_on_the_unit_of_reward(seed):
    """With a small gradient the multiplier of the region is small too, and no bound of it may be in the way."""
    hessian, g, b, _ = random_problem(seed)
    reach = np.sqrt(2 * DELTA * (b @ np.linalg.solve(hessian, b)))
    for c in (-0.7 * reach, -0.1 * reach, 0.3 * reach):
        (case, x), (other, y) = (closed_form(hessian, unit * g, b, c, "infeasible") for unit in (1.0, 1e-3))
        assert case == other
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-6)


def test_recovery_reduces_cost_as_fast_as_the_region_allows():
    hessian, g, b, _ = random_problem(1)
    case, x = closed_form(hessian, g, b, 1e3, "infeasible")
    assert case == RECOVER
    assert 0.5 * x @ hessian @ x == pytest.approx(DELTA)
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((2000, len(g)))
    scale = np.sqrt(2 * DELTA / np.einsum("ij,jk,ik->i", directions, hessian, directions))
    assert b @ x <= (directions @ b * scale).min() + 1e-12


def test_the_rule_violated_recovers_wherever_c_is_positive():
    hessian, g, b, _ = random_problem(2)
    small = 1e-4 * np.sqrt(2 * DELTA * (b @ np.linalg.solve(hessian, b)))
    assert closed_form(hessian, g, b, small, "infeasible")[0] == FROM_OUTSIDE
    assert closed_form(hessian, g, b, small, "violated")[0] == RECOVER
    assert closed_form(hessian, g, b, -small, "violated")[0] == FROM_INSIDE


def test_a_constraint_that_no_policy_changes_leaves_the_reward_step():
    hessian, g, b, _ = random_problem(4)
    case, x = closed_form(hessian, g, 0 * b, -1.0, "infeasible")
    assert case == UNCONSTRAINED
    expected = np.linalg.solve(hessian, g) * np.sqrt(2 * DELTA / (g @ np.linalg.solve(hessian, g)))
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.fixture(scope="module")
def real_step():
    policy = policy_for(spaces.Box(-np.inf, np.inf, (3,)), spaces.Box(-1, 1, (2,)))
    params = policy.init(jax.random.key(0), 3, PolicyConfig(hidden=(8,)))
    observations = jax.random.normal(jax.random.key(1), (500, 3))
    actions = policy.act(
        jax.tree.map(np.asarray, params), np.asarray(observations), np.random.default_rng(0).standard_normal((500, 2))
    )
    reward = jnp.asarray(actions[:, 0]) + observations[:, 0] * actions[:, 1]
    cost = jnp.asarray(actions[:, 0])  # what pays also costs
    config = TrustRegionConfig(kl=DELTA)
    batch = ActorBatch(observations, jnp.asarray(actions), None, reward, cost)
    step = jax.jit(lambda c: trust_region_step(policy, params, batch, c, cpo_rule, config))
    return policy, params, observations, actions, reward, cost, step


@pytest.mark.parametrize(("c", "case"), [(-100.0, UNCONSTRAINED), (100.0, RECOVER), (-0.01, FROM_INSIDE)])
def test_a_step_keeps_its_promises(real_step, c, case):
    policy, params, observations, actions, reward, cost, step = real_step
    new, report = step(jnp.float32(c))
    assert int(report["cpo_case"]) == case
    assert float(report["step_fraction"]) > 0
    old_outputs, new_outputs = policy.outputs(params, observations), policy.outputs(new, observations)
    kl = float(policy.kl(new_outputs, old_outputs).mean())
    assert 0 < kl <= DELTA
    assert float(report["kl"]) == pytest.approx(kl, rel=1e-3)
    ratio = jnp.exp(policy.log_prob(new_outputs, actions) - policy.log_prob(old_outputs, actions)) - 1
    change = float((ratio * cost).mean())
    assert float(report["cost_change"]) == pytest.approx(change, rel=1e-3, abs=1e-6)
    if case == RECOVER:
        assert change < 0
    else:
        assert float((ratio * reward).mean()) > 0
        assert change <= max(-c, 0)


@pytest.fixture
def conflict():
    """What pays costs as much, so that every step out of violation lowers the reward."""
    return RealPolicy()


def step_from_outside(example, c):
    config = configure("cpo", "E", trust_region={"kl": DELTA, "recover": "infeasible"})
    actor, report = jax.jit(cpo_actor(example.policy, config))(Actor(example.params, ()), example.inputs(c))
    return example.changes(actor.params), report


@pytest.mark.parametrize("c", [0.02, 0.1])
def test_a_step_from_outside_lowers_the_cost_though_the_reward_falls(conflict, c):
    """The drop in cost is the one that the linear model asks for, not only some."""
    (kl, gain, change), report = step_from_outside(conflict, c)
    assert int(report["cpo_case"]) == FROM_OUTSIDE
    assert float(report["step_fraction"]) > 0
    assert 0 < kl <= DELTA * (1 + 1e-4)
    assert change < -0.5 * c
    if c == 0.1:  # a small excess leaves most of the region to the reward
        assert gain < 0


def test_a_search_that_wants_more_reward_from_outside_too_freezes_the_policy(conflict, monkeypatch):
    """So the test above fails if `acceptable` asks for it."""
    search = trust_region.line_search

    def greedy(trial_of, acceptable, *rest):
        return search(trial_of, lambda trial: acceptable(trial) & (trial.reward_gain >= 0), *rest)

    monkeypatch.setattr(trust_region, "line_search", greedy)
    (kl, _, _), report = step_from_outside(conflict, 0.1)
    assert float(report["step_fraction"]) == 0
    assert kl == 0


def test_from_outside_the_cost_may_not_rise():
    """A full step that raises the cost, whatever its rule meant by it, is not taken."""
    example = RealPolicy()

    def wrong(model, config):
        return cpo_rule(model, config)._replace(step=-trust_region.cost_step(model, config))

    config = TrustRegionConfig(kl=DELTA, recover="infeasible")
    batch = example.batch._replace(reward_advantage=example.batch.cost_advantage)
    step = jax.jit(lambda c: trust_region_step(example.policy, example.params, batch, c, wrong, config))
    new, report = step(jnp.float32(0.02))
    assert float(report["step_fraction"]) == 0
    assert example.changes(new)[0] == 0


@pytest.mark.slow
def test_a_quarter_of_the_states_gives_nearly_the_same_step():
    """H over a subset: the step keeps its direction, and its KL over all states is that of the full H's step."""
    policy = policy_for(spaces.Box(-np.inf, np.inf, (6,)), spaces.Box(-1, 1, (2,)))
    params = policy.init(jax.random.key(0), 6, PolicyConfig(hidden=(16, 16)))
    params = jax.tree.map(lambda x: x + 0.1 * jax.random.normal(jax.random.key(9), x.shape), params)
    observations = jax.random.normal(jax.random.key(1), (8_000, 6))
    noise = np.asarray(policy.noise(jax.random.key(2), (8_000,)))
    actions = jnp.asarray(policy.act(jax.tree.map(np.asarray, params), np.asarray(observations), noise))
    reward = actions[:, 0] * observations[:, 0] + actions[:, 1]
    old, flat = policy.outputs(params, observations), jax.flatten_util.ravel_pytree
    steps, kls = [], []
    for fisher_states in (0, 2_000):
        config = TrustRegionConfig(kl=DELTA, fisher_states=fisher_states)
        batch = ActorBatch(observations, actions, None, reward, jnp.zeros(8_000))
        step = jax.jit(partial(trust_region_step, policy, rule=cpo_rule, config=config))
        new, report = step(params, batch, jnp.float32(-1))
        steps.append(np.asarray(flat(new)[0] - flat(params)[0]) / float(report["step_fraction"]))
        full = jax.tree.map(lambda old_, new_, f=report["step_fraction"]: old_ + (new_ - old_) / f, params, new)
        kls.append(float(policy.kl(policy.outputs(full, observations), old).mean()))
    cosine = steps[0] @ steps[1] / np.linalg.norm(steps[0]) / np.linalg.norm(steps[1])
    assert cosine > 0.98
    assert kls[1] == pytest.approx(kls[0], rel=0.1)
