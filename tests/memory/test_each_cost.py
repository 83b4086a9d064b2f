"""With several costs each has a memory, an intrinsic cost and a balancing factor, as if it were alone."""

import numpy as np

from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.batch import Batch
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser

LIMITS = {"a": 3.0, "b": 4.0}
RNG = np.random.default_rng(0)
OBSERVATIONS = RNG.normal(size=(9, 3, 2)).astype(np.float32)
COSTS = (RNG.random((9, 3, 2)) < [0.4, 0.2]).astype(np.float32)
BIAS = RNG.normal(size=(9, 3, 2))
NOTHING = np.zeros(0)
BATCH = Batch(
    *(0, OBSERVATIONS, NOTHING, NOTHING, NOTHING, COSTS, NOTHING, NOTHING, Normaliser.empty(2).frozen()),
    unsafe=COSTS > 0,
)


def started(limit, name="mice-pid"):
    config = configure(name, "E", cost_limit=limit, memory={"neighbours": 2, "embedding": 0})
    stream = make_cost_stream("memory", config, workers=1)
    memory, balance = FlashbulbMemory.empty(2, config.memory, np.random.default_rng(1)), Balance.start(config.balance)
    return stream, memory, balance


def test_each_has_its_own_memory_intrinsic_cost_and_factor():
    stream, memory, balance = started(LIMITS)
    memories, balances = dict.fromkeys(LIMITS, memory), dict.fromkeys(LIMITS, balance)
    memories, batch, _ = stream.add_intrinsic_cost(memories, balances, BATCH, None)
    balances = stream.correct(balances, batch._replace(cost_bias=BIAS))
    again = stream.add_intrinsic_cost(memories, balances, BATCH._replace(iteration=1), None)[1]
    assert memories["a"].size != memories["b"].size
    assert again.beta[0] != again.beta[1]
    for k, name in enumerate(LIMITS):
        single, own, factor = started(3.0)
        own, expected, _ = single.add_intrinsic_cost(own, factor, BATCH.of_cost(k), None)
        factor = single.correct(factor, expected._replace(cost_bias=BIAS[..., k]))
        np.testing.assert_array_equal(memories[name].states, OBSERVATIONS[COSTS[..., k] > 0])
        np.testing.assert_array_equal(memories[name].states, own.states)
        np.testing.assert_array_equal(batch.intrinsic[..., k], expected.intrinsic)
        assert (batch.beta[k], balances[name]) == (expected.beta, factor)
        assert again.beta[k] == factor.beta(single.balance_config)
