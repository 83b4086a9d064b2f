"""The pseudo-lidar of Safety-Gymnasium: angular bins around the agent, in each the closeness of the nearest target."""

from __future__ import annotations

import math

import numpy as np

from flashbulb.jit import jit_inline

BINS = 16


@jit_inline
def add_target(bins: np.ndarray, ahead: float, left: float, max_range: float, turn: float) -> None:
    """Enter a target at (ahead, left) in the agent's frame.

    Its bin gets the closeness 1 - distance / max_range; the two neighbouring bins get the share of it by which the
    target lies towards them. A bin keeps its largest value. `turn` is a full turn in the unit of angles: 2 pi for
    radians, BINS for bins. It decides the last bits of the result, so each task keeps the unit it started with.
    """
    closeness = (max_range - math.sqrt(ahead * ahead + left * left)) / max_range
    if closeness <= 0.0:
        return
    angle, width = math.atan2(left, ahead) * (turn / (2 * math.pi)), turn / BINS
    if angle < 0.0:
        angle += turn
    b = min(int(angle / width), BINS - 1)  # a tiny negative angle rounds to a full turn
    fraction = (angle - width * b) / width
    after, before = (b + 1) % BINS, (b - 1) % BINS
    bins[b] = max(bins[b], closeness)
    bins[after] = max(bins[after], fraction * closeness)
    bins[before] = max(bins[before], (1.0 - fraction) * closeness)
