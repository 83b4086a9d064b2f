"""One cost with its limit, or several with a name and a limit each.

With several, every array that belongs to a cost has one more axis, the last, over the costs in the order of their
names. Where one number must stand for all of them, it is that of the leading cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

CostLimit = float | dict[str, float]
# A column of one of several costs is COLUMN_NAME, so a name must not look like the rest of another column.
RESERVED = (
    *("standard_error", "rate", "loss", "value", "explained_variance", "change", "z", "limit"),
    *("late", "low", "high", "seeds"),
)
_SMALLEST = 1e-8  # stands in for a limit of 0


def relative_excess(costs: Any, limits: Any) -> Any:
    """(J_C - d) / d of each cost, the last axis."""
    return (costs - limits) / np.maximum(limits, _SMALLEST)


def leading_cost(costs: Any, limit: CostLimit) -> tuple[Any, Any]:
    """The cost with the largest excess relative to its limit, and that limit; a single cost leads by itself.

    The leading cost is above its limit exactly if any is. `costs` is (..., K), or what the one limit applies to.
    """
    if not isinstance(limit, dict):
        return costs, limit
    limits = np.array(list(limit.values()))
    first = relative_excess(np.asarray(costs), limits).argmax(axis=-1)
    return np.take_along_axis(np.asarray(costs), first[..., None], axis=-1)[..., 0], limits[first]


def leading_column(costs: np.ndarray, limit: CostLimit) -> np.ndarray:
    """Of several costs (rows, K) the one, (rows,), whose mean leads; a single cost as it is."""
    if not isinstance(limit, dict):
        return costs
    column: np.ndarray = costs[:, relative_excess(costs.mean(axis=0), np.array(list(limit.values()))).argmax()]
    return column


def limits_of_rows(metrics: Mapping[str, np.ndarray], limit: CostLimit) -> Any:
    """What the column `cost` of each row of metrics.csv is compared with: the column `limit` of several costs."""
    return metrics.get("limit", np.zeros(0)) if isinstance(limit, dict) else limit


def limit_columns(limit: CostLimit) -> dict[str, float]:
    """The columns of costs that have a limit, and that limit: `cost`, or `cost_NAME` of each."""
    return {f"cost_{name}": own for name, own in limit.items()} if isinstance(limit, dict) else {"cost": limit}


def limit_text(limit: CostLimit) -> str:
    """25, or hazards 25, vases 5."""
    return ", ".join(f"{name} {own:g}" for name, own in limit.items()) if isinstance(limit, dict) else f"{limit:g}"
