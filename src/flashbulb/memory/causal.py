"""A memory that knows no future: c^I of a state from what its own environment had met until then.

The authors' code appends to a queue of 100 states per environment while it samples. So a state resembles itself and
earlier unsafe states of the same environment, and never later ones. In Algorithm 1 it may, because the unsafe states of
a batch are stored before the batch's c^I is computed. A queue is emptied neither at the end of an episode nor of an
iteration, and counts for nothing until it has more than k states. (They store embeddings under the normalisation of the
time; ours are embedded under today's.)
"""

from __future__ import annotations

import numpy as np

BLOCK = 256  # steps at a time: bounds the number of distances that exist at once


def causal_distances(
    queries: np.ndarray, unsafe: np.ndarray, past: np.ndarray, k: int, capacity: int, own_entry: bool = True
) -> np.ndarray:
    """l^2 (time, k) of one environment's embedded states (time, m) to the k nearest in its queue at that time, in
    rising order; infinite where the queue has no more than k.

    `unsafe` (time,) marks those that enter the queue, `past` (P, m) are the ones that were in it before, oldest first.
    A state is in the queue when it is compared, unless `own_entry` is false.
    """
    entries = np.concatenate([past, queries[unsafe]])
    ends = len(past) + np.cumsum(unsafe) - (0 if own_entry else unsafe)  # what has entered by each step
    found = np.full((len(queries), k), np.inf, np.float32)
    for first in range(0, len(queries), BLOCK):
        here = slice(first, first + BLOCK)
        end, low = ends[here, None], max(int(ends[first]) - capacity, 0)
        index = np.arange(low, int(ends[here].max()))
        if len(index) <= k:
            continue
        squared = np.square(queries[here, None] - entries[None, index]).sum(axis=-1)
        queued = (index < end) & (index >= end - capacity)
        nearest = np.sort(np.partition(np.where(queued, squared, np.inf), k - 1, axis=1)[:, :k], axis=1)
        found[here] = np.where(queued.sum(axis=1, keepdims=True) > k, nearest, np.inf)
    return found


def queue_after(envs: np.ndarray, capacity: int) -> np.ndarray:
    """Indices of the newest `capacity` states of each environment; `envs` (M,) is where each was met, oldest first."""
    kept = [np.flatnonzero(envs == env)[-capacity:] for env in np.unique(envs)]
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
