"""FOCOPS and PCPO against closed forms, the other baselines against their definitions; each composes with MICE."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy.optimize import minimize

from flashbulb.algorithms.actor import Actor
from flashbulb.algorithms.crpo import crpo_actor
from flashbulb.algorithms.focops import focops_loss
from flashbulb.algorithms.multipliers import log_barrier_multiplier
from flashbulb.algorithms.natural_gradient import natural_actor
from flashbulb.algorithms.p3o import p3o_actor
from flashbulb.algorithms.pcpo import pcpo_actor, projection_rule
from flashbulb.algorithms.policy import Categorical
from flashbulb.algorithms.proximal import start_adam
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.batch import ActorBatch, Constraint
from flashbulb.config import TrustRegionConfig
from flashbulb.envs.early_end import EarlyEnd
from tests.algorithms.actor_batches import POLICY, example, inputs
from tests.algorithms.corridor import STEPS, Corridor
from tests.algorithms.quadratic_model import RealPolicy, random_problem, solve_rule
from tests.algorithms.test_registry import FAST, LIMIT, TOLERANCE, run, tail

BASELINES = ("trpo-lag", "rcpo", "focops", "pcpo", "p3o", "ipo", "crpo")


class Table:
    """A categorical policy whose parameters are its logits, for one state."""

    def __init__(self):
        self._plain = Categorical(spaces.Discrete(3))
        self.log_prob, self.kl = self._plain.log_prob, self._plain.kl

    def outputs(self, params, observations):
        return jnp.broadcast_to(params, (len(observations), 3))


def test_focops_has_its_minimum_at_the_closed_form():
    """pi* ~ pi_k exp(A / T), where the batch has every action as often as pi_k samples it."""
    counts = np.array([5, 3, 2])
    logits = jnp.log(jnp.asarray(counts / counts.sum(), jnp.float32))
    actions = np.repeat(np.arange(3), counts)
    advantage = np.array([0.4, -0.7, 0.9], np.float32)[actions]
    log_prob = np.log(counts / counts.sum())[actions].astype(np.float32)
    zeros = np.zeros(len(actions), np.float32)
    batch = ActorBatch(np.zeros((len(actions), 1), np.float32), actions, log_prob, advantage, zeros)
    config = configure("focops", "E", proximal={"kl": 1e9}, focops={"temperature": 0.5})
    loss = jax.jit(jax.value_and_grad(lambda p: focops_loss(Table(), p, logits, batch, jnp.asarray(advantage), config)))
    found = minimize(lambda p: tuple(np.asarray(x, np.float64) for x in loss(jnp.float32(p))), np.zeros(3), jac=True).x
    expected = counts * np.exp(np.array([0.4, -0.7, 0.9]) / 0.5)
    np.testing.assert_allclose(jax.nn.softmax(found), expected / expected.sum(), atol=2e-3)


def test_focops_leaves_out_states_that_are_far():
    config = configure("focops", "E", proximal={"kl": 1e-6})
    params, batch = example()
    far = jax.tree.map(lambda p: p + 1, params)
    loss = focops_loss(POLICY, far, params, batch, batch.reward_advantage, config)
    assert loss == 0


@pytest.mark.parametrize("c", [-0.5, -0.01, 0.02, 0.4, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_pcpo_is_the_projection_in_the_metric_of_the_kl_as_far_as_the_region_reaches(seed, c):
    hessian, g, b, _ = random_problem(seed)
    config = TrustRegionConfig(kl=0.02)
    step = solve_rule(projection_rule, hessian, g, b, c, config)
    h_g = np.linalg.solve(hessian, g)
    free = h_g * np.sqrt(2 * config.kl / (g @ h_g))
    solver = minimize(
        lambda x: (x - free) @ hessian @ (x - free),
        free,
        jac=lambda x: 2 * hessian @ (x - free),
        constraints={"type": "ineq", "fun": lambda x: -(c + b @ x), "jac": lambda x: -b},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    nearest, edge = solver.x, np.sqrt(2 * config.kl)
    length = np.sqrt(nearest @ hessian @ nearest)
    np.testing.assert_allclose(step, nearest * min(1, edge / length), atol=1e-5)


def test_pcpo_moves_however_far_it_is_outside_the_limit():
    """The constraint in units of an episode: the nearest policy that keeps it is out of reach of a line search."""
    real = RealPolicy()
    actor = pcpo_actor(real.policy, configure("pcpo", "E"))
    moved, metrics = jax.jit(actor)(Actor(real.params, ()), real.inputs(60.0))
    kl, _, cost_change = real.changes(moved.params)
    assert metrics["step_fraction"] > 0.5
    assert 0.002 < kl <= 0.0101
    assert cost_change < -0.01


def with_constraint(batch, excess, c=0.0):
    constraint = Constraint(np.float32(excess), np.float32(c), np.float32(0))
    return inputs(batch, rate=3e-3)._replace(constraint=constraint)


def change(params, moved, batch, advantage):
    """E[pi/pi_k A] of the new policy."""
    log_prob = POLICY.log_prob(POLICY.outputs(moved, batch.observations), batch.actions)
    return float((np.exp(log_prob - batch.log_prob) * (advantage - advantage.mean())).mean())


def test_crpo_steps_for_reward_within_the_limit_and_for_cost_outside_it():
    params, batch = example()
    step = jax.jit(crpo_actor(POLICY, configure("crpo", "E", crpo={"tolerance": 1.0})))
    for excess, for_cost in ((-3.0, 0), (0.9, 0), (1.1, 1)):
        actor, metrics = step(Actor(params, ()), with_constraint(batch, excess))
        assert metrics["for_cost"] == for_cost
        wanted = -batch.cost_advantage if for_cost else batch.reward_advantage
        assert change(params, actor.params, batch, wanted) > 0.01


def test_p3o_is_ppo_within_the_limit_and_lowers_the_cost_outside_it():
    params, batch = example()
    config = configure("p3o", "E", proximal={"minibatch": 50, "kl": 1.0}, p3o={"kappa": 20.0})
    step = jax.jit(p3o_actor(POLICY, config))
    start = Actor(params, start_adam(params, config))
    inside, _ = step(start, with_constraint(batch, -100, -100))
    outside, _ = step(start, with_constraint(batch, 100, 100))
    free = configure("p3o", "E", proximal={"minibatch": 50, "kl": 1.0}, p3o={"kappa": 0})
    plain, _ = jax.jit(p3o_actor(POLICY, free))(start, with_constraint(batch, 0, 0))
    jax.tree.map(np.testing.assert_array_equal, inside.params, plain.params)
    assert change(params, outside.params, batch, batch.cost_advantage) < -0.05
    assert change(params, inside.params, batch, batch.reward_advantage) > 0.05


def test_the_barrier_has_the_slope_of_its_logarithm():
    config = configure("ipo", "E", cost_limit=10.0, log_barrier={"weight": 2.0, "maximum": 20.0})

    def lam(cost):
        return float(log_barrier_multiplier((), jnp.float32(cost), config)[1])

    def barrier(cost):
        return -2.0 * np.log(10.0 - cost)

    assert lam(6.0) == pytest.approx((barrier(6.001) - barrier(5.999)) / 0.002, rel=1e-3)
    assert lam(9.99) == lam(10.0) == lam(50.0) == 20.0


def test_the_natural_gradient_moves_by_the_size_of_the_region():
    params, batch = example(500)
    config = configure("rcpo", "E", trust_region={"kl": 1e-4, "damping": 1e-3, "cg_iterations": 50})
    actor, metrics = jax.jit(natural_actor(POLICY, config))(Actor(params, ()), inputs(batch, lam=0.5))
    assert metrics["kl"] == pytest.approx(1e-4, rel=0.1)
    assert change(params, actor.params, batch, batch.reward_advantage - 0.5 * batch.cost_advantage) > 0


def test_an_episode_ends_when_it_exceeds_the_limit_and_others_go_on():
    env = EarlyEnd(Corridor(2), 3)
    env.reset(seed=0)
    forward = np.array([[1.0], [0.0]])
    ended = [env.step(forward) for _ in range(10)]
    # Beyond 0.5 from the sixth step on: the fourth cost is that of step 9.
    assert [bool(step[3][0]) for step in ended] == [False] * 8 + [True, False]
    assert not any(step[3][1] or step[4].any() for step in ended)
    at_end = ended[8]
    assert at_end[5]["_final_obs"].tolist() == [True, False]
    assert at_end[5]["final_obs"][0, 0] == pytest.approx(0.9)
    assert at_end[0][0].tolist() == [0.0, 0.0]  # the next episode
    assert at_end[0][1, 1] == pytest.approx(9 / STEPS)  # the other one goes on
    state = env.get_state()
    after = [env.step(forward) for _ in range(12)]
    env.set_state(state)
    for one, other in zip(after, (env.step(forward) for _ in range(12)), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[3], other[3])


@pytest.mark.parametrize("name", BASELINES)
def test_they_compose(name):
    base, composed = get_algorithm(name), get_algorithm(f"mice-{name}")
    assert (composed.actor, composed.multiplier, composed.cost_stream) == (base.actor, base.multiplier, "memory")


@pytest.mark.slow
@pytest.mark.parametrize("name", BASELINES)
def test_they_train_with_intrinsic_cost(name, tmp_path):
    metrics = run(f"mice-{name}", tmp_path, 6)
    assert metrics["memory_size"].max() > 0
    assert metrics["intrinsic_return"].max() > 0


@pytest.mark.slow
def test_early_ends_teach_to_keep_the_limit(tmp_path):
    metrics = run("ppo-early-end", tmp_path, **{"proximal": FAST["proximal"]})
    assert tail(metrics, "cost") < LIMIT + TOLERANCE
    assert tail(metrics, "length") > 0.8 * STEPS
