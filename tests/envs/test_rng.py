"""The generators: PCG64 restored from rows, xoshiro256++ against published numbers. MT19937 is in test_layout.py."""

import numpy as np
import pytest

from flashbulb.envs.rng import (
    pack_pcg64,
    pcg64_generators,
    unpack_pcg64,
    xoshiro_seeded,
    xoshiro_uniform,
    xoshiro_word,
)
from flashbulb.errors import UsageError


def draw(rng: np.random.Generator) -> np.ndarray:
    small = rng.integers(0, 2**32, 3, dtype=np.uint32)  # an odd number leaves half a word behind
    return np.r_[small, rng.uniform(size=2), rng.standard_normal(2)]


def test_packed_generators_go_on_where_they_were() -> None:
    rngs = pcg64_generators(7, 3)
    np.testing.assert_array_equal(draw(rngs[2]), draw(np.random.default_rng(9)))
    for rng in rngs:
        draw(rng)
    rows = pack_pcg64(rngs)
    assert rows.shape == (3, 6)
    assert rows.dtype == np.uint64
    assert rows[0, 4] == 1  # the half word is there
    restored = [unpack_pcg64(row) for row in rows]
    for ours, theirs in zip(restored, rngs, strict=True):
        np.testing.assert_array_equal(draw(ours), draw(theirs))


def test_splitmix64_seeding_gives_the_published_words() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert xoshiro_seeded(1234567, 1)[0].tolist() == published


def test_words_from_state_1234_are_the_published_ones() -> None:
    state = np.array([1, 2, 3, 4], np.uint64)
    published = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [int(xoshiro_word(state)) for _ in published] == published


def test_environments_are_seeded_by_consecutive_seeds() -> None:
    assert np.array_equal(xoshiro_seeded(7, 3)[2], xoshiro_seeded(9, 1)[0])
    assert len(np.unique(xoshiro_seeded(0, 1000))) == 4000


@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_is_uniform_and_uncorrelated(seed: int) -> None:
    n = 50_000
    state = xoshiro_seeded(seed, 1)[0]
    u = np.array([xoshiro_uniform(state, -2.0, 3.0) for _ in range(n)])
    assert u.min() >= -2.0
    assert u.max() < 3.0
    counts = np.histogram(u, 50, (-2.0, 3.0))[0]
    chi2 = ((counts - n / 50) ** 2 / (n / 50)).sum()
    assert 49 - 5 * np.sqrt(98) < chi2 < 49 + 5 * np.sqrt(98)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5 / np.sqrt(n)


def test_neighbouring_seeds_are_uncorrelated() -> None:
    states = xoshiro_seeded(0, 20_000)
    first = np.array([xoshiro_uniform(s, 0.0, 1.0) for s in states])
    assert abs(first.mean() - 0.5) < 5 * np.sqrt(1 / 12 / first.size)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 5 / np.sqrt(first.size)


def test_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="seed: -1 "):
        xoshiro_seeded(-1, 2)
