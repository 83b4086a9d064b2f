"""Exact distances to the nearest of many points, for thousands of queries at once.

SciPy's KD-tree does the same in double precision and takes several times as long: in eight dimensions a query comes
near to many leaves, and what matters is the time to scan a leaf. Here a leaf is an array of coordinates, and a block is
the bounding boxes of several leaves. Both have sizes known at compile time, so the loops over points and dimensions are
vectorised.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from flashbulb.jit import jit_fastmath, jit_fastmath_inline

LEAF, BLOCK = 64, 32  # points in a leaf, leaves in a block; infinitely far ones fill them up
STRIDE = 8  # dimensions are filled up to a multiple of it, with zeros
INFINITE = np.float32(np.inf)
SLACK = np.float32(1.0001)  # more than rounding can take from a bound


class BlockIndex(NamedTuple):
    """Points in leaves, leaves in blocks; single precision."""

    leaves: np.ndarray  # (blocks, BLOCK, dimensions, LEAF)
    boxes: np.ndarray  # (blocks, 2, dimensions, BLOCK): least and largest coordinates in each leaf
    hulls: np.ndarray  # (2, dimensions, blocks): in each block


def nearest_distances(points: np.ndarray, queries: np.ndarray, k: int, workers: int = 1) -> np.ndarray:
    """Squared distances (queries, k) to the `k` nearest points, in rising order; infinite beyond their number.

    Fastest where a query is near to the one before it. The number of workers does not change a bit of the result.
    """
    index, queries = build_index(points), _padded(queries)
    found = np.empty((len(queries), k), np.float32)
    portions = 8 * workers if workers > 1 else 1  # some take longer than others
    ends = np.linspace(0, len(queries), portions + 1).astype(int)
    parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda part: _search(queries[part], *index, found[part]), parts))
    return found


def _padded(rows: np.ndarray) -> np.ndarray:
    count, dimensions = rows.shape
    padded = np.zeros((count, -(-dimensions // STRIDE) * STRIDE), np.float32)
    padded[:, :dimensions] = rows
    return padded


def build_index(points: np.ndarray) -> BlockIndex:
    """Halve the points at their widest dimension, first into blocks, then into leaves, all full but the last."""
    padded = _padded(points)
    order = np.arange(len(padded))
    _arrange(padded, order)
    blocks = max(1, -(-len(padded) // (BLOCK * LEAF)))
    leaves = np.full((blocks, BLOCK, padded.shape[1], LEAF), INFINITE)
    boxes = np.full((blocks, 2, padded.shape[1], BLOCK), INFINITE)
    _fill(padded, order, leaves, boxes)
    highest = np.where(boxes[:, 1] < INFINITE, boxes[:, 1], -INFINITE)  # of leaves that there are
    hulls = np.stack([boxes[:, 0].min(axis=2).T, highest.max(axis=2).T])
    return BlockIndex(leaves, boxes, np.ascontiguousarray(hulls))


@jit_fastmath
def _arrange(points: np.ndarray, order: np.ndarray) -> None:
    """Sort the indices of points by leaves."""
    ends, count = np.empty(64, np.int64), 1  # of what is yet to be halved, the nearest last
    begin, ends[0] = 0, len(order)
    while count:
        end = ends[count - 1]
        size = LEAF if end - begin <= BLOCK * LEAF else BLOCK * LEAF
        parts = -(-(end - begin) // size)
        if parts > 1:
            some, half = order[begin:end], parts // 2 * size
            _select(points[:, _widest(points, some)], some, half)
            ends[count] = begin + half
            count += 1
        else:
            begin = end
            count -= 1


@jit_fastmath_inline
def _widest(points: np.ndarray, some: np.ndarray) -> int:
    widest, width = 0, np.float32(-1)
    for d in range(points.shape[1]):
        least = largest = points[some[0], d]
        for i in some:
            least, largest = min(least, points[i, d]), max(largest, points[i, d])
        if largest - least > width:
            widest, width = d, largest - least
    return widest


@jit_fastmath_inline
def _select(keys: np.ndarray, order: np.ndarray, middle: int) -> None:
    """Put the indices of the `middle` smallest keys first (Hoare's quickselect)."""
    low, high = 0, len(order) - 1
    while low < high:
        pivot = keys[order[(low + high) // 2]]
        i, j = low, high
        while i <= j:
            while keys[order[i]] < pivot:
                i += 1
            while keys[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@jit_fastmath
def _fill(points: np.ndarray, order: np.ndarray, leaves: np.ndarray, boxes: np.ndarray) -> None:
    for begin in range(0, len(order), LEAF):
        g, leaf = divmod(begin // LEAF, BLOCK)
        some = order[begin : begin + LEAF]
        for d in range(points.shape[1]):
            least = largest = points[some[0], d]
            for j in range(len(some)):
                x = points[some[j], d]
                leaves[g, leaf, d, j] = x
                least, largest = min(least, x), max(largest, x)
            boxes[g, 0, d, leaf], boxes[g, 1, d, leaf] = least, largest


@jit_fastmath
def _search(queries: np.ndarray, leaves: np.ndarray, boxes: np.ndarray, hulls: np.ndarray, found: np.ndarray) -> None:
    to_block = np.empty(hulls.shape[2], np.float32)
    to_leaf, candidates = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int64)
    to_point = np.empty(LEAF, np.float32)
    for i in range(len(queries)):
        query, best = queries[i], found[i]
        bound = INFINITE
        if i > 0:  # the last query's neighbours are at most the way between the two farther from this one
            moved = np.float32(0)
            for d in range(len(query)):
                moved += (query[d] - queries[i - 1, d]) ** 2
            near = SLACK * (np.sqrt(moved) + np.sqrt(found[i - 1, -1])) ** 2
            bound = near if near < INFINITE else INFINITE  # also after one that was not a number
        best[:] = bound
        _to_hulls(query, hulls, to_block)
        while True:
            g = 0
            for other in range(1, len(to_block)):
                g = other if to_block[other] < to_block[g] else g
            if not to_block[g] < best[-1]:
                break
            to_block[g] = INFINITE
            _to_boxes(query, boxes[g], to_leaf)
            for n in range(_candidates(to_leaf, best[-1], candidates)):
                leaf = candidates[n]
                if to_leaf[leaf] < best[-1] and _to_points(query, leaves[g, leaf], best[-1], to_point):
                    _keep(to_point, best)


@jit_fastmath_inline
def _beyond(x: np.float32, least: np.float32, largest: np.float32) -> np.float32:
    return max(max(least - x, x - largest), np.float32(0))


@jit_fastmath_inline
def _to_hulls(query: np.ndarray, hulls: np.ndarray, out: np.ndarray) -> None:
    """Squared distance to the nearest corner, side or inside of each hull."""
    for j in range(len(out)):
        out[j] = np.float32(0)
        for d in range(len(query)):
            out[j] += _beyond(query[d], hulls[0, d, j], hulls[1, d, j]) ** 2


@jit_fastmath_inline
def _to_boxes(query: np.ndarray, boxes: np.ndarray, out: np.ndarray) -> None:
    """The same to each box of a block."""
    for first in range(0, len(query), STRIDE):
        for j in range(BLOCK):
            square = np.float32(0) if first == 0 else out[j]
            for d in range(STRIDE):
                square += _beyond(query[first + d], boxes[0, first + d, j], boxes[1, first + d, j]) ** 2
            out[j] = square


@jit_fastmath_inline
def _to_points(query: np.ndarray, points: np.ndarray, bound: np.float32, out: np.ndarray) -> int:
    """Squared distance to each point of a leaf; returns how many are below the bound."""
    for first in range(0, len(query), STRIDE):
        for j in range(LEAF):
            square = np.float32(0) if first == 0 else out[j]
            for d in range(STRIDE):
                square += (points[first + d, j] - query[first + d]) ** 2
            out[j] = square
    nearer = np.int32(0)
    for j in range(LEAF):
        nearer += np.int32(out[j] < bound)
    return int(nearer)


@jit_fastmath_inline
def _candidates(to_leaf: np.ndarray, bound: np.float32, out: np.ndarray) -> int:
    """The leaves that are near enough, the nearest of them first: soon a good bound. Returns their number."""
    count, first, least = 0, 0, INFINITE
    for leaf in range(BLOCK):  # without branches, which the processor could not predict
        out[count] = leaf
        first = count if to_leaf[leaf] < least else first
        least = min(least, to_leaf[leaf])
        count += to_leaf[leaf] < bound
    out[0], out[first] = out[first], out[0]
    return count


@jit_fastmath_inline
def _keep(distances: np.ndarray, best: np.ndarray) -> None:
    """Insert what is smaller than the largest of the best."""
    bound, count = best[-1], 0
    for j in range(len(distances)):  # gather them first, without branches
        x = distances[j]
        distances[count] = x
        count += x < bound
    for j in range(count):
        x = distances[j]
        if x < best[-1]:
            at = len(best) - 1
            while at > 0 and best[at - 1] > x:
                best[at] = best[at - 1]
                at -= 1
            best[at] = x
