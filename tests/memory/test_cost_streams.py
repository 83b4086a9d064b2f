"""What is added to the task's cost: nothing, a constant, or beta c^I."""

import numpy as np
import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.batch import Batch
from flashbulb.errors import UsageError
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser

TIME, ENVS = 7, 3
RNG = np.random.default_rng(0)
OBSERVATIONS = RNG.normal(size=(TIME, ENVS, 2)).astype(np.float32)
COSTS = (RNG.random((TIME, ENVS)) < 0.3).astype(np.float32)
BIAS = np.ones((TIME, ENVS))
UNIT = Normaliser.empty(2).frozen()


def no_likelihood(*arguments):
    raise AssertionError("only a memory filled from a data set asks for it")


def recalled(name, **settings):
    config = configure(name, "E", **settings)
    kind = {"cpo": "extrinsic", "mice-cpo": "memory"}.get(name, "constant")
    stream = make_cost_stream(kind, config, workers=1)
    memory = FlashbulbMemory.empty(2, config.memory, np.random.default_rng(1))
    balance = Balance.start(config.balance)
    nothing = np.zeros(0)
    batch = Batch(0, OBSERVATIONS, nothing, nothing, nothing, COSTS, nothing, nothing, UNIT, unsafe=COSTS > 0)
    memory, batch, _ = stream.add_intrinsic_cost(memory, balance, batch, no_likelihood)
    return memory, batch.beta * batch.intrinsic, stream.correct(balance, batch._replace(cost_bias=BIAS)), balance


def test_extrinsic_adds_nothing_and_remembers_nothing():
    memory, added, after, before = recalled("cpo")
    np.testing.assert_array_equal(added, np.zeros_like(COSTS))
    assert memory.size == 0
    assert after == before


def test_a_constant_adds_up_to_itself_in_the_value():
    memory, added, after, before = recalled("constant-3-cpo", cost_gamma=0.95)
    assert sum(0.95**t * added[0, 0] for t in range(2000)) == pytest.approx(3.0, rel=1e-5)
    assert np.ptp(added) == 0
    assert memory.size == 0
    assert after == before


def test_a_constant_of_every_step():
    _, added, _, _ = recalled("constant-3-cpo", constant={"of": "step"})
    assert configure("constant-3-cpo", "E", constant={"of": "step"}).constant.value == 3
    np.testing.assert_array_equal(added, np.full_like(COSTS, 3.0))


def test_a_constant_in_place_of_the_intrinsic_cost_has_the_balancing_factor_before_it():
    """5 * 0.99^n * 3, with b corrected by the bias over the constant: 5 - 0.005 * 1 / 3 after one update."""
    balance = {"initial": 5.0, "rate": 0.005, "discount": 0.99}
    memory, added, after, _ = recalled("constant-3-cpo", constant={"of": "intrinsic"}, balance=balance)
    np.testing.assert_allclose(added, np.full_like(COSTS, 15.0), rtol=1e-6)
    assert memory.size == 0
    config = configure("constant-3-cpo", "E", constant={"of": "intrinsic"}, balance=balance)
    assert after.beta(config.balance) == pytest.approx(0.99 * (5 - 0.005 / 3))


def test_memory_adds_a_cost_near_unsafe_states_and_corrects_its_factor():
    memory, added, after, before = recalled("mice-cpo", memory={"neighbours": 1, "embedding": 0})
    unsafe = COSTS > 0
    np.testing.assert_array_equal(memory.states, OBSERVATIONS[unsafe])
    distance = np.linalg.norm(OBSERVATIONS[:, :, None] - OBSERVATIONS[unsafe], axis=-1).min(axis=-1)
    np.testing.assert_allclose(added, 5 * np.sqrt(1e-3 / (distance**2 + 1e-3)), rtol=1e-4)
    assert float(after.b) < float(before.b)  # the critic overestimated


def test_factors_of_states_replace_the_factor_and_are_discounted_once_more():
    """With the authors' factor, what the learner smoothed (`next_beta`) is what counts next, and no correction."""
    config = configure("mice-cpo", "E", balance={"factor": "state", "initial": 5.0, "discount": 0.9})
    stream, before = make_cost_stream("memory", config, workers=1), Balance.start(config.balance)
    nothing = np.zeros(0)
    batch = Batch(0, OBSERVATIONS, nothing, nothing, nothing, COSTS, nothing, nothing, UNIT, intrinsic=COSTS)
    batch = batch._replace(cost_bias=BIAS, next_beta=np.array([4.0, -1.0, 3.0]))
    after = stream.correct(before, batch)
    np.testing.assert_allclose(after.beta(config.balance), [3.6, -0.9, 2.7])
    after = stream.correct(after, batch._replace(next_beta=np.array([3.6, -0.9, 0.0])))
    np.testing.assert_allclose(after.beta(config.balance), [3.24, -0.81, 0.0])


def test_a_discount_of_costs_of_one_is_refused():
    with pytest.raises(UsageError, match="cost_gamma"):
        configure("mice-cpo", "E", cost_gamma=1.0)
