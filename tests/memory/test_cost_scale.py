"""The readings of a "normalised" c^I, and the authors' kernel, against numbers worked out by hand."""

import numpy as np
import pytest

from flashbulb.config import MemoryConfig
from flashbulb.memory import FlashbulbMemory
from flashbulb.memory.cost_scale import absorb, divisor, start_statistics
from flashbulb.memory.intrinsic_cost import linear_kernel
from flashbulb.normaliser import Normaliser

IDENTITY = Normaliser.empty(1).frozen()
QUERIES = np.array([[0.0], [1.0]], np.float32)


def memory_at(*places, **settings):
    config = MemoryConfig(embedding=0, **settings)
    empty = FlashbulbMemory.empty(1, config, np.random.default_rng(0))
    return empty.add(np.array(places, np.float32)[:, None], 0, config), config


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_unnormalised_an_own_entry_is_worth_one_whatever_k_is(k):
    """Divided by sqrt(k) it is worth 1, 0.45, 0.32, 0.22, so that a larger k weakens c^I by construction."""
    for normalise, worth in (("none", 1.0), ("sqrt-k", 1 / np.sqrt(k))):
        memory, config = memory_at(0.0, neighbours=k, normalise=normalise)
        assert memory.intrinsic_cost(QUERIES, IDENTITY, config)[0][0] == pytest.approx(worth)


def test_unnormalised_it_is_equation_4_as_printed():
    memory, config = memory_at(0.0, 3.0, neighbours=2, xi=1.0, normalise="none")
    found, _ = memory.intrinsic_cost(QUERIES, IDENTITY, config)
    np.testing.assert_allclose(found, [np.sqrt(1 + 1 / 10), np.sqrt(1 / 2 + 1 / 5)], rtol=1e-6)


def test_the_authors_kernel_by_hand():
    """l = 1 and 3 have a mean of 2: K = 1e-4 / (0.5 - 0.008 + 1e-4) and 1e-4 / (1.5 - 0.008 + 1e-4)."""
    settings = {"distance": "own-mean", "kernel": "linear", "xi": 1e-4, "normalise": "none", "neighbours": 2}
    memory, config = memory_at(1.0, 3.0, **settings)
    found, _ = memory.intrinsic_cost(np.zeros((1, 1), np.float32), IDENTITY, config)
    assert found[0] == pytest.approx(np.sqrt(1e-4 / 0.4921 + 1e-4 / 1.4921), rel=1e-5)
    near = np.square([0.0, 0.004, 0.008, 0.0081])  # within 0.008 two states count as one
    np.testing.assert_allclose(linear_kernel(near, 1e-4), [1, 1, 1, 0.5], rtol=1e-9)


@pytest.mark.parametrize("normalise", ["max", "deviation"])
def test_by_a_statistic_of_the_run_so_far(normalise):
    plain, as_printed = memory_at(0.0, neighbours=1, xi=1.0, normalise="none")
    memory, config = memory_at(0.0, neighbours=1, xi=1.0, normalise=normalise)
    rng, seen = np.random.default_rng(0), []
    for size in (5, 30, 12):
        queries = rng.normal(1.0, 1.0, (size, 1)).astype(np.float32)
        unscaled, _ = plain.intrinsic_cost(queries, IDENTITY, as_printed)
        seen.extend(unscaled.tolist())
        found, memory = memory.intrinsic_cost(queries, IDENTITY, config)
        size_so_far = np.max(seen) if normalise == "max" else np.std(seen)
        np.testing.assert_allclose(found, unscaled / size_so_far, rtol=1e-5)
    assert (found >= 0).all(), "nothing is subtracted"


def test_where_the_statistic_is_nothing_the_cost_stays_as_it_is():
    for scale in ("max", "deviation"):
        assert divisor(absorb(start_statistics(scale), np.zeros(4)), scale) == 1.0
    assert divisor(absorb(start_statistics("deviation"), np.full(4, 0.7)), "deviation") == 1.0


def test_only_a_running_scale_adds_to_the_checkpoint():
    assert start_statistics("sqrt-k") == start_statistics("none") == ()
    assert memory_at(0.0, normalise="max")[0].cost_statistics.shape == (4,)
