"""Nearest neighbours against all distances, sorted, and against SciPy's KD-tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree

from flashbulb.memory.neighbours import BLOCK, LEAF, STRIDE, build_index, nearest_distances


def brute_force(points, queries, k):
    squared = np.square(queries[:, None].astype(np.float64) - points[None]).sum(axis=-1)
    padded = np.concatenate([squared, np.full((len(queries), k), np.inf)], axis=1)
    return np.sort(padded, axis=1)[:, :k]


@settings(deadline=None, max_examples=60)
@given(
    count=st.integers(1, 3 * LEAF),
    dimensions=st.integers(1, 20),
    k=st.integers(1, 12),
    levels=st.integers(1, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_like_brute_force_with_ties_and_duplicates(count, dimensions, k, levels, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, levels, (count, dimensions)).astype(np.float32)  # few levels make many ties
    queries = np.concatenate([points[:20], rng.integers(0, levels, (20, dimensions)).astype(np.float32)])
    np.testing.assert_array_equal(nearest_distances(points, queries, k), brute_force(points, queries, k))


@pytest.mark.parametrize("count", [LEAF * BLOCK - 1, LEAF * BLOCK + 1, 20_000])
def test_like_scipy_on_large_memories(count):
    rng = np.random.default_rng(count)
    points = (rng.standard_normal((count, 8)) * 10.0 ** rng.integers(-2, 2, 8)).astype(np.float32)
    walk = np.cumsum(0.1 * rng.standard_normal((3_000, 8)), axis=0).astype(np.float32)
    expected = KDTree(points).query(walk, k=10)[0] ** 2
    np.testing.assert_allclose(nearest_distances(points, walk, 10), expected, rtol=1e-5)


def test_far_jumps_between_queries_lose_nothing():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((5_000, 3)).astype(np.float32)
    queries = (rng.standard_normal((2_000, 3)) * 10.0 ** rng.integers(-3, 4, (2_000, 1))).astype(np.float32)
    np.testing.assert_allclose(nearest_distances(points, queries, 4), brute_force(points, queries, 4), rtol=1e-5)


def test_a_query_that_is_not_a_number_does_not_spoil_the_next():
    rng = np.random.default_rng(3)
    points, queries = (rng.standard_normal((n, 3)).astype(np.float32) for n in (500, 9))
    queries[4, 1] = np.nan
    fine = np.arange(9) != 4
    np.testing.assert_allclose(
        nearest_distances(points, queries, 4)[fine], brute_force(points, queries[fine], 4), rtol=1e-5
    )


def test_workers_do_not_change_a_bit():
    rng = np.random.default_rng(1)
    points, queries = (rng.standard_normal((n, 8)).astype(np.float32) for n in (3_000, 1_001))
    one = nearest_distances(points, queries, 10)
    for workers in (2, 3, 7):
        np.testing.assert_array_equal(nearest_distances(points, queries, 10, workers), one)


def test_every_point_is_indexed_once_and_inside_its_box():
    points = np.random.default_rng(2).standard_normal((7_001, 5)).astype(np.float32)
    index = build_index(points)
    flat = index.leaves.transpose(0, 1, 3, 2).reshape(-1, STRIDE)[:, :5]
    indexed = flat[np.isfinite(flat).all(axis=1)]
    np.testing.assert_array_equal(np.sort(indexed, axis=0), np.sort(points, axis=0))
    inside = np.isfinite(index.leaves)
    low, high = index.boxes[:, 0].swapaxes(1, 2)[..., None], index.boxes[:, 1].swapaxes(1, 2)[..., None]
    assert ((index.leaves >= low) & (index.leaves <= high))[inside].all()


def test_fewer_queries_than_workers_and_none():
    points = np.zeros((3, 2), np.float32)
    assert nearest_distances(points, np.ones((1, 2), np.float32), 2, workers=4).tolist() == [[2.0, 2.0]]
    assert nearest_distances(points, np.ones((0, 2), np.float32), 2, workers=2).shape == (0, 2)
