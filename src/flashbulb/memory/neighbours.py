"""Exact distances to the nearest of many points, for thousands of queries at once.

SciPy's KD-tree does the same in double precision and takes three times as long: in eight dimensions a query comes near
to many leaves, and what counts is how fast a leaf is gone through. Here a leaf is a block of coordinates that the
processor takes eight points at a time, and the bounding boxes of a grove of leaves are another such block.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from flashbulb.compiling import summing

LEAF, GROVE = 64, 32  # the most points in a leaf, the most leaves in a grove
LANES = 8  # leaves are filled up to a multiple of it, with points infinitely far away
INFINITE = np.float32(np.inf)
SLACK = np.float32(1.0001)  # more than rounding can take from a bound


class Forest(NamedTuple):
    """Points in leaves, leaves in groves; single precision."""

    leaves: np.ndarray  # (groves, leaves, dimensions, points)
    boxes: np.ndarray  # (groves, 2, dimensions, leaves): least and largest coordinates in each leaf
    hulls: np.ndarray  # (2, dimensions, groves): in each grove


def nearest(points: np.ndarray, queries: np.ndarray, k: int, workers: int = 1) -> np.ndarray:
    """Squared distances (queries, k) to the `k` nearest points, in rising order; infinite beyond their number.

    Fastest where a query is near to the one before it. The number of workers does not change a bit of the result.
    """
    forest = plant(np.ascontiguousarray(points, np.float32))
    queries = np.ascontiguousarray(queries, np.float32)
    found = np.empty((len(queries), k), np.float32)
    ends = np.linspace(0, len(queries), workers + 1).astype(int)
    parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda part: _search(queries[part], *forest, found[part]), parts))
    return found


def plant(points: np.ndarray) -> Forest:
    """Halve the points at the median of their widest dimension until the parts are small enough for a leaf."""
    count, dimensions = points.shape
    leaves = 1 << max(0, int(np.ceil(np.log2(max(count, 1) / LEAF))))
    size = LANES * max(1, -(-count // (leaves * LANES)))
    columns = np.full((dimensions, leaves * size), INFINITE)
    columns[:, :count] = points.T
    parts = 1
    while parts < leaves:
        inside = columns.reshape(dimensions, parts, -1)
        least, largest = _extent(inside)
        along = inside[(largest - least).argmax(axis=0), np.arange(parts)]
        halves = np.argpartition(along, along.shape[1] // 2, axis=1) + along.shape[1] * np.arange(parts)[:, None]
        columns, parts = columns[:, halves.ravel()], 2 * parts
    groves = max(1, leaves // GROVE)
    contents = columns.reshape(dimensions, groves, -1, size)
    boxes = np.stack(_extent(contents))
    hulls = np.stack([boxes[0].min(axis=2), boxes[1].max(axis=2)])
    blocks = contents.transpose(1, 2, 0, 3), boxes.transpose(2, 0, 1, 3), hulls
    return Forest(*map(np.ascontiguousarray, blocks))


def _extent(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest along the last axis, of what is not padding; few parts have any."""
    least, largest = inside.min(axis=-1), inside.max(axis=-1)
    padded = np.isinf(largest)
    largest[padded] = np.where(np.isinf(inside[padded]), -INFINITE, inside[padded]).max(axis=-1)
    return least, largest


@summing
def _search(queries: np.ndarray, leaves: np.ndarray, boxes: np.ndarray, hulls: np.ndarray, found: np.ndarray) -> None:
    to_grove = np.empty(hulls.shape[2], np.float32)
    to_leaf = np.empty(boxes.shape[3], np.float32)
    to_point = np.empty(leaves.shape[3], np.float32)
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
        _to_boxes(query, hulls, to_grove)
        for _ in range(len(to_grove)):
            g = np.argmin(to_grove)
            if not to_grove[g] < best[-1]:
                break
            to_grove[g] = INFINITE
            _to_boxes(query, boxes[g], to_leaf)
            first = np.argmin(to_leaf)  # soon a good bound
            for step in range(-1, len(to_leaf)):
                leaf = first if step < 0 else step
                if to_leaf[leaf] < best[-1]:
                    to_leaf[leaf] = INFINITE
                    _to_points(query, leaves[g, leaf], to_point)
                    _keep(to_point, best)


@summing
def _to_boxes(query: np.ndarray, boxes: np.ndarray, out: np.ndarray) -> None:
    """Squared distance to the nearest corner, side or inside of each box."""
    for j in range(len(out)):
        out[j] = np.float32(0)
    for d in range(len(query)):
        x = query[d]
        for j in range(len(out)):
            beyond = max(max(boxes[0, d, j] - x, x - boxes[1, d, j]), np.float32(0))
            out[j] += beyond * beyond


@summing
def _to_points(query: np.ndarray, points: np.ndarray, out: np.ndarray) -> None:
    for j in range(len(out)):
        out[j] = np.float32(0)
    for d in range(len(query)):
        x = query[d]
        for j in range(len(out)):
            away = points[d, j] - x
            out[j] += away * away


@summing
def _keep(distances: np.ndarray, best: np.ndarray) -> None:
    """Insert what is smaller than the largest of the best."""
    bound, nearer = best[-1], np.int32(0)
    for j in range(len(distances)):  # a loop that is vectorised; mostly there are none
        nearer += np.int32(distances[j] < bound)
    if nearer == 0:
        return
    count = 0
    for j in range(len(distances)):  # one without branches
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
