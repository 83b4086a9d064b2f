"""The pseudo-lidar: sixteen angular bins per group of objects; the nearest counts (section E)."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.jit import jit_helper, jit_inline

BINS = 16
_WIDTH = 2 * math.pi / BINS


@jit_inline
def _see(x: float, y: float, pos: np.ndarray, mat: np.ndarray, reach: float, bins: np.ndarray) -> None:
    """Enter one object at world (x, y) into the bins of its group."""
    dx, dy, dz = x - pos[0], y - pos[1], -pos[2]
    ahead = mat[0, 0] * dx + mat[1, 0] * dy + mat[2, 0] * dz
    left = mat[0, 1] * dx + mat[1, 1] * dy + mat[2, 1] * dz
    strength = (reach - math.sqrt(ahead * ahead + left * left)) / reach
    if strength <= 0.0:
        return
    angle = math.atan2(left, ahead)
    if angle < 0.0:
        angle += 2 * math.pi
    b = min(int(angle / _WIDTH), BINS - 1)  # a tiny negative angle rounds to a full turn
    fraction = (angle - _WIDTH * b) / _WIDTH
    after, before = (b + 1) % BINS, (b - 1) % BINS
    bins[b] = max(bins[b], strength)
    bins[after] = max(bins[after], fraction * strength)
    bins[before] = max(bins[before], (1.0 - fraction) * strength)


@jit_helper
def write_lidars(
    batch: Batch,
    rules: Rules,
    members: np.ndarray,
    pos: np.ndarray,
    mat: np.ndarray,
    first: int,
    obs: np.ndarray,
) -> None:
    """Fill `obs[:, first:]` of the members, groups in the level's order."""
    for i in members:
        here, frame = pos[i], mat[i]
        obs[i, first:] = 0.0
        for g in range(len(rules.lidars)):
            begin, end, column, blind = rules.lidars[g]
            if blind and batch.timer[i] != 0:
                continue
            bins = obs[i, first + BINS * g : first + BINS * (g + 1)]
            for k in range(begin, end):
                if column >= 0:
                    at = column + 7 * (k - begin)
                    x, y = batch.physics[i, at], batch.physics[i, at + 1]
                else:
                    x, y = batch.objects[i, k, 0], batch.objects[i, k, 1]
                _see(x, y, here, frame, rules.lidar_range, bins)
