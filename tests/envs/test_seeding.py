"""Generators come back from an array exactly, the half-used word of 32-bit draws included."""

import numpy as np

from flashbulb.envs import seeding as generators


def draw(rng: np.random.Generator) -> np.ndarray:
    small = rng.integers(0, 2**32, 3, dtype=np.uint32)  # an odd number leaves half a word behind
    return np.r_[small, rng.uniform(size=2), rng.standard_normal(2)]


def test_packed_generators_go_on_where_they_were() -> None:
    rngs = generators.seeded(7, 3)
    np.testing.assert_array_equal(draw(rngs[2]), draw(np.random.default_rng(9)))
    for rng in rngs:
        draw(rng)
    rows = generators.pack(rngs)
    assert rows.shape == (3, 6)
    assert rows.dtype == np.uint64
    assert rows[0, 4] == 1  # the half word is there
    restored = [generators.unpack(row) for row in rows]
    for ours, theirs in zip(restored, rngs, strict=True):
        np.testing.assert_array_equal(draw(ours), draw(theirs))
