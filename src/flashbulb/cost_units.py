"""The extrinsic cost in the units in which the critic learns it.

The appendix on the random projection has "both extrinsic and intrinsic costs are normalized"; the authors' code is
OmniSafe's `cost_normalize`, which subtracts a running mean and divides by a running standard deviation of at least 0.01
(and clips at 5, which ours does not). J_C stays raw, there and here, so the constraint and the cost advantages are then
in different units. Without the mean, costs stay non-negative and a safe state keeps the value 0.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from flashbulb.normaliser import Normaliser

Reading = Literal["none", "scale", "standardise"]
LEAST_DEVIATION = 1e-2  # rare costs would become huge


class CostUnits(NamedTuple):
    """A cost c is learned as (c - mean) / deviation."""

    mean: float = 0.0
    deviation: float = 1.0

    def __call__(self, costs: np.ndarray) -> np.ndarray:
        return (costs - self.mean) / self.deviation


def start_normaliser(reading: Reading) -> Normaliser | tuple[()]:
    """Running statistics of a cost, a part of the checkpoint; nothing where they are not needed."""
    return () if reading == "none" else Normaliser.empty(1)


def cost_units(normaliser: Any, reading: Reading) -> CostUnits:
    """The units after what the normaliser has seen; raw ones before it has seen anything."""
    if reading == "none" or not normaliser.seen:
        return CostUnits()
    deviation = max(float(np.sqrt(normaliser.variance[0])), LEAST_DEVIATION)
    return CostUnits(float(normaliser.mean[0]) if reading == "standardise" else 0.0, deviation)


def learned_costs(normaliser: Any, costs: np.ndarray, reading: Reading) -> tuple[Any, np.ndarray | None]:
    """The statistics with a batch's costs in them, and these costs in the new units; None if they are to stay raw."""
    if reading == "none":
        return normaliser, None
    normaliser = normaliser.absorb(costs)
    return normaliser, cost_units(normaliser, reading)(costs).astype(np.float32)
