"""Flashbulb memory: what it keeps, and nearest neighbours against brute force."""

import numpy as np
import pytest

from flashbulb.config import MemoryConfig
from flashbulb.memory import FlashbulbMemory
from flashbulb.normaliser import FrozenNormaliser, Normaliser


def memory_of(states, config, iteration=0):
    empty = FlashbulbMemory.empty(states.shape[1], config, np.random.default_rng(0))
    return empty.add(states, iteration, config)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def affine(rng, size):
    return FrozenNormaliser(rng.standard_normal(size).astype(np.float32), (0.5 + rng.random(size)).astype(np.float32))


def brute_force(memory, observations, normalise, config, skip=None):
    """c^I from the paper's equations 4 and 5, all distances, sorted."""

    def f(x):
        z = np.clip((x - normalise.mean) * normalise.scale, -10, 10)
        return z @ memory.projection if config.embedding else z

    distances = np.square(f(observations)[:, None] - f(memory.states)[None]).sum(-1).astype(np.float64)
    out = []
    for i, row in enumerate(distances):
        others = np.delete(row, skip[i]) if skip is not None and skip[i] >= 0 else row
        nearest = np.sort(others)[: config.neighbours]
        out.append(np.sqrt(sum(config.xi / (l2 + config.xi) for l2 in nearest) / config.neighbours))
    return np.array(out)


@pytest.mark.parametrize("embedding", [0, 3, 8])
@pytest.mark.parametrize("stored", [1, 4, 200])
def test_intrinsic_cost_is_brute_force(rng, embedding, stored):
    config = MemoryConfig(neighbours=5, embedding=embedding, xi=0.1)
    normalise = affine(rng, 12)
    memory = memory_of(rng.standard_normal((stored, 12)).astype(np.float32), config)
    observations = rng.standard_normal((90, 12)).astype(np.float32)
    found, _ = memory.intrinsic_cost(observations, normalise, config)
    np.testing.assert_allclose(found, brute_force(memory, observations, normalise, config), rtol=1e-4)


def test_excluding_oneself(rng):
    config = MemoryConfig(neighbours=4, embedding=0, xi=0.1, exclude_self=True)
    normalise = affine(rng, 6)
    observations = rng.standard_normal((50, 6)).astype(np.float32)
    unsafe = np.arange(50) % 3 == 0
    memory = memory_of(observations[unsafe], config)
    found, _ = memory.intrinsic_cost(observations, normalise, config, unsafe)
    skip = np.full(50, -1)
    skip[unsafe] = np.arange(unsafe.sum())
    np.testing.assert_allclose(found, brute_force(memory, observations, normalise, config, skip), rtol=1e-4)
    counting_itself, _ = memory.intrinsic_cost(observations, normalise, MemoryConfig(neighbours=4, embedding=0, xi=0.1))
    assert (counting_itself[unsafe] > found[unsafe]).all()
    np.testing.assert_array_equal(counting_itself[~unsafe], found[~unsafe])


def test_a_stored_state_has_a_larger_intrinsic_cost_than_a_far_one(rng):
    config = MemoryConfig(neighbours=1)
    states = rng.standard_normal((20, 5)).astype(np.float32)
    memory = memory_of(states, config)
    identity = Normaliser.empty(5).frozen()
    near, _ = memory.intrinsic_cost(states, identity, config)
    far, _ = memory.intrinsic_cost(states + 5, identity, config)
    np.testing.assert_allclose(near, 1.0, atol=1e-6)
    assert (far < 0.1).all()


def test_with_an_empty_memory_the_intrinsic_cost_is_zero(rng):
    config = MemoryConfig()
    memory = memory_of(np.zeros((0, 4), np.float32), config)
    cost, _ = memory.intrinsic_cost(rng.standard_normal((9, 4)), Normaliser.empty(4).frozen(), config)
    assert cost.tolist() == [0.0] * 9


def test_capacity_follows_the_window_up_to_the_cap():
    config = MemoryConfig(window=2, max_states=7)
    memory = FlashbulbMemory.empty(1, config, np.random.default_rng(0))
    kept = []
    for iteration, count in enumerate([3, 2, 4, 6, 0, 0]):
        memory = memory.add(np.full((count, 1), iteration, np.float32), iteration, config)
        kept.append(memory.states.ravel().astype(int).tolist())
    assert kept == [[0] * 3, [0] * 3 + [1] * 2, [1] * 2 + [2] * 4, [2] + [3] * 6, [3] * 6, []]


def test_old_states_are_seen_through_todays_normaliser(rng):
    """Embeddings kept under a drifting normaliser would tell a state from itself."""
    config = MemoryConfig(neighbours=1)
    states = rng.standard_normal((10, 4)).astype(np.float32)
    memory = memory_of(states, config)
    for drift in (1.0, 3.0):
        normalise = Normaliser.empty(4).absorb(drift * rng.standard_normal((100, 4)) + drift).frozen()
        cost, _ = memory.intrinsic_cost(states, normalise, config)
        np.testing.assert_allclose(cost, 1.0, atol=1e-6)


def test_projection_keeps_squared_distances_in_the_mean(rng):
    """Johnson-Lindenstrauss: unbiased, with a relative spread of sqrt(2 / m)."""
    x = rng.standard_normal(30).astype(np.float32)
    ratios = []
    for seed in range(400):
        memory = FlashbulbMemory.empty(30, MemoryConfig(embedding=8), np.random.default_rng(seed))
        ratios.append(np.square(x @ memory.projection).sum() / np.square(x).sum())
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 8 / 400))
    assert np.std(ratios) == pytest.approx(np.sqrt(2 / 8), rel=0.2)


def test_a_memory_made_of_its_first_four_fields_has_the_plain_view(rng):
    states = rng.standard_normal((5, 3)).astype(np.float32)
    memory = FlashbulbMemory(states, np.zeros(5, np.int64), np.zeros((3, 0), np.float32), np.zeros(()))
    normalise = affine(rng, 3)
    np.testing.assert_array_equal(memory.embed(states, normalise), normalise(states))
    assert memory.update_salience(states, np.ones(5, bool), normalise) is memory


def test_threads_change_nothing(rng):
    config = MemoryConfig()
    memory = memory_of(rng.standard_normal((500, 6)).astype(np.float32), config)
    x, identity = rng.standard_normal((300, 6)), Normaliser.empty(6).frozen()
    one, _ = memory.intrinsic_cost(x, identity, config, workers=1)
    two, _ = memory.intrinsic_cost(x, identity, config, workers=2)
    np.testing.assert_array_equal(one, two)


def test_running_mean_of_distances_starts_with_the_first_batch_and_then_moves_slowly(rng):
    config = MemoryConfig(neighbours=3, embedding=0, distance="mean")
    memory = memory_of(rng.standard_normal((40, 4)).astype(np.float32), config)
    identity, x = Normaliser.empty(4).frozen(), rng.standard_normal((60, 4)).astype(np.float32)
    first = memory.squared_distances(x, identity, config, None, 1).mean()
    _, memory = memory.intrinsic_cost(x, identity, config)
    assert float(memory.mean_squared_distance) == pytest.approx(first)
    second = memory.squared_distances(3 * x, identity, config, None, 1).mean()
    _, memory = memory.intrinsic_cost(3 * x, identity, config)
    assert float(memory.mean_squared_distance) == pytest.approx(0.99 * first + 0.01 * second)
