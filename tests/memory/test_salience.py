"""The salient view against its definition, entry by entry, and what it is for."""

import numpy as np
import pytest

from flashbulb.algorithms.registry import configure
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.batch import Batch
from flashbulb.config import MemoryConfig
from flashbulb.memory import Balance, FlashbulbMemory, anticipation
from flashbulb.memory.salience import FEWEST, salience, sort_lidars
from flashbulb.normaliser import Normaliser


def test_a_turn_of_the_agent_changes_nothing_in_a_ring_and_the_rest_stays():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(5, 10)).astype(np.float32)
    turned = seen.copy()
    turned[:, 2:6] = np.roll(seen[:, 2:6], 3, axis=1)
    lidars = np.array([[2, 6]])
    np.testing.assert_array_equal(sort_lidars(seen, lidars), sort_lidars(turned, lidars))
    np.testing.assert_array_equal(sort_lidars(seen, lidars)[:, [0, 1, 6, 7, 8, 9]], seen[:, [0, 1, 6, 7, 8, 9]])
    np.testing.assert_array_equal(sort_lidars(seen, np.zeros((0, 2), int)), seen)


def test_weights_entry_by_entry():
    rng = np.random.default_rng(1)
    view, unsafe = rng.normal(size=(60, 3, 4)), rng.random((60, 3)) < 0.3
    view[unsafe, 2] += 3
    expected = []
    for entry in range(4):
        hurt = [view[t, m, entry] for t in range(60) for m in range(3) if unsafe[t, m]]
        fine = [view[t, m, entry] for t in range(60) for m in range(3) if not unsafe[t, m]]
        expected.append(((sum(hurt) / len(hurt) - sum(fine) / len(fine)) / np.std(hurt + fine)) ** 2)
    expected = np.array(expected) / np.sqrt(sum(x * x for x in expected) / 4)
    found = salience(view, unsafe, np.ones(4))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.argmax() == 2


@pytest.mark.parametrize("safe", [False, True])
def test_too_few_states_of_a_kind_teach_nothing(safe):
    unsafe = np.full(100, not safe)
    unsafe[: FEWEST - 1] = safe
    before = np.array([1.0, 2.0])
    assert salience(np.random.default_rng(0).normal(size=(100, 2)), unsafe, before) is before


def test_entries_that_never_differ_teach_nothing():
    before = np.ones(2)
    assert salience(np.zeros((100, 2)), np.arange(100) < 50, before) is before


def batch(rng):
    """Episodes with a danger ahead at any bearing, announced by a rising reading, and much that means nothing."""
    time, members, bins = 60, 8, 8
    reading = np.tile(np.r_[np.linspace(0, 1, 30), np.zeros(30)][:, None], (1, members))
    ring = np.zeros((time, members, bins))
    np.put_along_axis(ring, rng.integers(bins, size=(1, members, 1)).repeat(time, 0), reading[..., None], axis=2)
    noise = rng.normal(size=(1, members, 6)) + 0.1 * rng.normal(size=(time, members, 6))
    ended = np.zeros((time, members), bool)
    ended[-1] = True
    return np.concatenate([noise, ring], axis=-1).astype(np.float32), (reading > 0.9), ended


def foresight(view: str) -> float:
    """AUC of c^I in a batch with the memory of another, eight episodes that it has nothing else in common with."""
    rng = np.random.default_rng(3)
    config = configure("mice-cpo", "E", memory={"view": view, "embedding": 0, "xi": 0.1})
    normalise = Normaliser.empty(14).frozen()
    memory = FlashbulbMemory.empty(14, config.memory, np.random.default_rng(0), lidar_groups=((6, 14),))
    observations, unsafe, _ = batch(rng)
    nothing = np.zeros(0)
    samples = Batch(0, observations, *[nothing] * 6, normalise, unsafe=unsafe)
    stream, balance = make_cost_stream("memory", config, 1), Balance.start(config.balance)
    memory, _, _ = stream.add_intrinsic_cost(memory, balance, samples, lambda *_: nothing)
    observations, unsafe, ended = batch(rng)
    intrinsic, _ = memory.intrinsic_cost(observations.reshape(-1, 14), normalise, config.memory)
    return anticipation(intrinsic.reshape(unsafe.shape), unsafe.astype(np.float32), ended)


def test_it_recognises_danger_in_episodes_that_it_has_not_seen():
    assert foresight("salient") > 0.95
    assert foresight("observation") < 0.8


def test_the_plain_view_is_the_papers_to_the_last_bit():
    rng = np.random.default_rng(0)
    states, seen = rng.normal(size=(2, 40, 5)).astype(np.float32)
    normalise = Normaliser.empty(5).frozen()
    memory = FlashbulbMemory.empty(5, MemoryConfig(), np.random.default_rng(0), lidar_groups=((1, 4),))
    memory = memory.add(states, 0, MemoryConfig()).update_salience(seen, np.arange(40) < 20, normalise)
    np.testing.assert_array_equal(memory.embed(seen, normalise), normalise(seen) @ memory.projection)
