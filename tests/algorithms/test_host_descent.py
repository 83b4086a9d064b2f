"""The compiled actor: gradients of each loss against JAX's, whole steps against those of optax, threads, the option."""

import dataclasses
import itertools
import os
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from flashbulb.algorithms import cup, host_descent
from flashbulb.algorithms.actor import Actor, HostStep, StepInputs
from flashbulb.algorithms.cup import projection_loss
from flashbulb.algorithms.focops import focops_loss
from flashbulb.algorithms.host_descent import HostPolicy, _to_tree, _to_vector, descend_on_host, host_kl, loss_of
from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.parts import ACTORS
from flashbulb.algorithms.policy import Categorical, Gaussian
from flashbulb.algorithms.proximal import clipped_loss, start_adam
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.algorithms.small_network import blas
from flashbulb.batch import ActorBatch, Batch, Constraint
from flashbulb.config import PolicyConfig

STATES, OBSERVED = 110, 5
POLICIES = {
    "one": Gaussian(spaces.Box(-1, 1, (1,))),
    "three": Gaussian(spaces.Box(-1, 1, (3,))),
    "discrete": Categorical(spaces.Discrete(4)),
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def disturbed(params, seed, by):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda p: (np.asarray(p) + by * rng.normal(size=p.shape)).astype(np.float32), params)


def example(policy, hidden=(8, 6), seed=0):
    """Parameters, and a batch that a policy sampled with them."""
    rng = np.random.default_rng(seed)
    params = policy.init(jax.random.key(seed), OBSERVED, PolicyConfig(hidden=hidden))
    params = disturbed(params, seed, 0.2)
    observations = rng.normal(size=(STATES, OBSERVED)).astype(np.float32)
    noise = np.asarray(policy.noise(jax.random.key(seed), (STATES,)))
    actions = policy.act(params, observations, noise)
    log_prob = np.asarray(policy.log_prob(policy.outputs(params, observations), actions))
    return params, ActorBatch(observations, actions, log_prob, *rng.normal(size=(2, STATES)).astype(np.float32))


def compiled_gradient(policy, params, began, batch, loss):
    """Adam's first mean after one step on the whole batch is a tenth of the gradient."""
    here = HostPolicy(policy, began, batch, STATES)
    here.begin()
    here.vector[:] = _to_vector(params)
    here.descend(loss, np.random.default_rng(1).permutation(STATES)[None], np.float32(0), np.float32(1e9))
    return _to_tree(here.mean / np.float32(0.1), params)


def assert_same_gradient(policy, params, began, batch, ours, theirs):
    expected = jax.grad(theirs)(params)
    found = compiled_gradient(policy, params, began, batch, ours)
    assert all(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), found, expected)


def ratios(policy, params, batch):
    outputs = policy.outputs(params, batch.observations)
    return np.exp(np.asarray(policy.log_prob(outputs, batch.actions)) - batch.log_prob)


@policies
def test_gradient_of_the_clipped_loss(policy):
    config = configure("ppo-lag", "E", proximal={"clip": 0.2}).proximal
    sampled, batch = example(policy)
    params = disturbed(sampled, 3, 0.2)
    ratio, a = ratios(policy, params, batch), batch.reward_advantage
    for sign, outside in itertools.product((-1, 1), (ratio < 0.8, ratio > 1.2, (ratio > 0.8) & (ratio < 1.2))):
        assert (outside & (sign * a > 0)).sum() > 3  # each branch of the minimum has states
    ours = loss_of(a, clip=0.2)
    assert_same_gradient(
        policy, params, sampled, batch, ours, lambda p: clipped_loss(policy, p, batch, jnp.asarray(a), config)
    )


@policies
def test_gradient_of_cups_projection(policy):
    sampled, batch = example(policy)
    halfway, params = disturbed(sampled, 3, 0.1), disturbed(sampled, 4, 0.2)
    ours = loss_of(-1.7 * batch.cost_advantage, kl_weight=1)
    assert_same_gradient(
        policy, params, halfway, batch, ours, lambda p: projection_loss(policy, p, halfway, batch, 1.7)
    )


@policies
def test_gradient_of_focops_in_states_that_are_near(policy):
    sampled, batch = example(policy)
    params = disturbed(sampled, 3, 0.2)
    distances = policy.kl(policy.outputs(params, batch.observations), policy.outputs(sampled, batch.observations))
    near = float(np.median(distances))  # half of them are
    config = configure("focops", "E", proximal={"kl": near}, focops={"temperature": 0.7})
    ours = loss_of(batch.reward_advantage / 0.7, kl_weight=1, near=near)
    theirs = jnp.asarray(batch.reward_advantage)
    assert_same_gradient(
        policy, params, sampled, batch, ours, lambda p: focops_loss(policy, p, sampled, batch, theirs, config)
    )


@policies
@pytest.mark.parametrize("above", [True, False])
def test_gradient_of_p3o_on_both_sides_of_the_limit(policy, above):
    config = configure("p3o", "E", proximal={"clip": 0.2}).proximal
    sampled, batch = example(policy)
    params = disturbed(sampled, 3, 0.2)
    price = -jnp.asarray(batch.cost_advantage)
    rise = float(clipped_loss(policy, params, batch, price, config))
    c = -rise + (1e-3 if above else -1e-3)  # so that a rise that is not right changes sides

    def theirs(p):
        earned = clipped_loss(policy, p, batch, jnp.asarray(batch.reward_advantage), config)
        return earned + 20.0 * jnp.maximum(c + clipped_loss(policy, p, batch, price, config), 0.0)

    ours = loss_of(batch.reward_advantage, batch.cost_advantage, clip=0.2, kappa=20.0, c=c)
    assert_same_gradient(policy, params, sampled, batch, ours, theirs)


@policies
@pytest.mark.parametrize("block", [64, 110, 7])
def test_the_divergence_of_all_states(policy, block, monkeypatch):
    """Also where the last block is not full."""
    sampled, batch = example(policy)
    params = disturbed(sampled, 3, 0.2)
    here = HostPolicy(policy, sampled, batch, block)
    here.begin()
    assert here.look() == pytest.approx(0, abs=1e-7)
    here.vector[:] = _to_vector(params)
    now, before = (policy.outputs(p, batch.observations) for p in (params, sampled))
    expected = float(policy.kl(now, before).mean())
    assert here.look() == pytest.approx(expected, rel=1e-4)
    assert host_kl(policy, params, sampled, batch) == pytest.approx(expected, rel=1e-4)


def inputs_of(batch, key, rate=1e-2):
    constraint = Constraint(np.float32(1), np.float32(0.05), np.float32(0.6))
    return StepInputs(batch, constraint, np.float32(rate), np.float32(0), key)


def orders(*keys, passes):
    """A generator that shuffles as `proximal.py:descend` does, first with one key and then with the next."""
    left = iter([jax.random.fold_in(key, n) for key in keys for n in range(passes)])
    return types.SimpleNamespace(permutation=lambda n: np.array(jax.random.permutation(next(left), n), int))


def both_steps(name, policy, **settings):
    """The step of an algorithm in compiled loops and under JAX."""
    configs = {b: configure(name, "E", proximal={"backend": b} | settings) for b in ("compiled", "optax")}
    part = get_algorithm(name).actor_part
    on_host, in_jax = (part.make(policy, config) for config in configs.values())
    assert isinstance(on_host, HostStep)
    return on_host.run, jax.jit(in_jax), lambda params: part.start(params, configs["compiled"])


# Gradients are compared for every kind of policy above; a whole step of each between changes is enough for one kind.
@pytest.mark.parametrize(
    "policy", [pytest.param(p, id=n, marks=[pytest.mark.slow] if n != "three" else []) for n, p in POLICIES.items()]
)
@pytest.mark.parametrize("name", ["ppo-lag", "cup", "focops", "p3o"])
def test_a_whole_step_is_that_of_optax(name, policy, monkeypatch):
    """Twice, so that moments are not zero; 110 states in minibatches of 20 leave a remainder."""
    settings = {"passes": 3, "minibatch": 20, "max_grad_norm": 0.3, "kl": 1e9 if name != "focops" else 0.3}
    on_host, in_jax, start = both_steps(name, policy, **settings)
    params, batch = example(policy)
    ours = theirs = Actor(params, start(params))
    for n in range(2):
        key = jax.random.key(n)
        keys = jax.random.split(key) if name == "cup" else [key]
        for module in (host_descent, cup):
            monkeypatch.setattr(module, "host_generator", lambda _, keys=keys: orders(*keys, passes=3))
        ours, our_metrics = on_host(ours, inputs_of(batch, key))
        theirs, their_metrics = in_jax(theirs, inputs_of(batch, key))
        assert our_metrics.keys() == their_metrics.keys()
        for column in our_metrics:
            assert float(our_metrics[column]) == pytest.approx(float(their_metrics[column]), rel=2e-3), column
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    assert jax.tree.map(lambda a: (a.shape, a.dtype), ours) == jax.tree.map(lambda a: (a.shape, a.dtype), theirs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=3e-4), ours, theirs)
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(params), strict=True):
        assert np.abs(a - b).max() > 0.02


def test_passes_end_when_the_policy_is_far():
    policy = POLICIES["three"]
    params, batch = example(policy)
    config = configure("ppo", "E", proximal={"passes": 4, "minibatch": 20, "kl": 1e9})
    start = Actor(params, start_adam(params, config))

    def descend(**settings):
        proximal = dataclasses.replace(config.proximal, **settings)
        loss, rng = loss_of(batch.reward_advantage, clip=0.2), np.random.default_rng(0)
        return descend_on_host(policy, loss, start, inputs_of(batch, None, 3e-3), proximal, rng)

    after = [descend(passes=n) for n in (1, 2, 3)]
    assert after[0].kl < after[1].kl < after[2].kl
    stopped = descend(kl=float(after[0].kl + after[1].kl) / 2)
    assert stopped.passes == 2
    jax.tree.map(np.testing.assert_array_equal, stopped.actor, after[1].actor)
    assert int(stopped.actor.optimiser[1].count) == 2 * (STATES // 20)
    assert descend(kl=float(after[0].kl)).passes == 2  # `kl` itself is near enough


def test_the_actor_that_is_given_stays_as_it_is():
    policy = POLICIES["three"]
    on_host, _, start = both_steps("cup", policy, passes=1, minibatch=20)
    params, batch = example(policy)
    actor = Actor(params, start(params))
    before = jax.tree.map(np.array, actor)
    on_host(actor, inputs_of(batch, jax.random.key(0)))
    jax.tree.map(np.testing.assert_array_equal, actor, before)


def test_what_is_not_a_number_is_not_hidden_from_the_actor():
    policy = POLICIES["three"]
    params, batch = example(policy)
    on_host, _, start = both_steps("ppo-lag", policy, passes=2, minibatch=20)
    broken = batch._replace(reward_advantage=np.full(STATES, np.nan, np.float32))
    actor, metrics = on_host(Actor(params, start(params)), inputs_of(broken, jax.random.key(0)))
    assert np.isnan(actor.params.log_std).all()
    assert np.isnan(metrics["kl"])
    assert metrics["actor_passes"] == 1


def learner_update(name, policy, threads, hidden=(8, 6), **proximal):
    config = configure(
        name,
        "E",
        threads=threads,
        policy={"hidden": hidden},
        critic={"hidden": (4,), "passes": 2, "minibatch": 20},
        proximal={"passes": 3, "minibatch": 20} | proximal,
    )
    parts = Learner(policy, get_algorithm(name), config)
    _, batch = example(policy)
    made = parts.init(OBSERVED, jax.random.key(0))
    targets = np.random.default_rng(0).normal(size=(2, STATES)).astype(np.float32)
    constraint = Constraint(jnp.float32(1), jnp.float32(0.05), jnp.float32(0.6))
    device = jax.tree.map(jnp.asarray, batch)  # as the estimates leave it
    whole = Batch(*[None] * 9, actor=device, critic_targets=targets, constraint=constraint)  # type: ignore[arg-type]
    return parts, *parts.update(made, whole, 0.25, jax.random.key(1))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores to compare with one")
@pytest.mark.parametrize("name", ["pid-lag", "cup"])
def test_threads_change_nothing(name):
    """Neither those of the update nor those of the matrix library, with products that it would split."""
    settings = {"hidden": (300, 100), "minibatch": 100}
    found = []
    for threads, products in ((1, 1), (2, 2)):
        with blas().limit(limits=products):
            found.append(learner_update(name, POLICIES["three"], threads, **settings)[1:])
            assert {library["num_threads"] for library in blas().info()} == {products}  # given back
    jax.tree.map(np.testing.assert_array_equal, *found)


PROXIMAL = sorted(n for n, part in ACTORS.items() if "proximal" in part.settings)


# All take the same way back; one is enough between changes.
@pytest.mark.parametrize("name", [PROXIMAL[0], *(pytest.param(n, marks=pytest.mark.slow) for n in PROXIMAL[1:])])
def test_the_option_takes_the_step_back_to_jax(name):
    algorithm = {"ppo": "pid-lag"}.get(name, name)
    for backend, on_host in (("compiled", True), ("optax", False)):
        parts, state, metrics = learner_update(algorithm, POLICIES["discrete"], 1, backend=backend, kl=1e9)
        assert isinstance(parts._actor_step, HostStep) == on_host
        outputs = parts.policy.outputs(state.policy, example(parts.policy)[1].observations)
        assert float(metrics["entropy"]) == pytest.approx(float(parts.policy.entropy(outputs).mean()), rel=1e-5)
        assert int(metrics["actor_passes"]) == 3
