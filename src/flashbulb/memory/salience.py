"""The salient view: an embedding in which danger met in one place resembles danger in another. Ours, not the paper's.

Two things keep a state from resembling an unsafe state of another episode. A lidar's readings shift around as the
agent turns, so the same hazard at another bearing is far away; and most of an observation has nothing to do with
danger and drowns the few entries that have. The view sorts each ring of readings, which forgets the bearing, and weighs
every entry by how well it tells unsafe states from others. docs/method.md has what that is worth.
"""

from __future__ import annotations

import numpy as np

FEWEST = 20  # unsafe states, below which their mean says too little about any entry


def sort_lidars(observations: np.ndarray, lidar_groups: np.ndarray) -> np.ndarray:
    """Observations (..., n) with the entries of each lidar (first, end) in ascending order."""
    sorted_ = observations.copy()
    for first, end in lidar_groups:
        sorted_[..., first:end] = np.sort(observations[..., first:end], axis=-1)
    return sorted_


def salience(view: np.ndarray, unsafe: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Weight of every entry of a view (..., n): its squared distance between the means of unsafe and other states, in
    standard deviations. Scaled to a mean square of 1, so that distances keep their size; `before` where too little
    is known."""
    if min(unsafe.sum(), (~unsafe).sum()) < FEWEST:
        return before
    spread = np.maximum(view.std(axis=tuple(range(unsafe.ndim))), 1e-3)
    weight = np.square((view[unsafe].mean(axis=0) - view[~unsafe].mean(axis=0)) / spread)
    size = float(np.sqrt(np.square(weight).mean()))
    return (weight / size).astype(np.float32) if size > 0 else before
