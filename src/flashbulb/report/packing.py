"""Numbers as short text: a report of many runs is still one file that a phone can open."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

LEVELS = 2**16 - 1
DIGITS = 6  # significant ones, of numbers that are shown or drawn


def track(values: np.ndarray) -> dict[str, Any]:
    """An array in 65,536 steps between its least and its greatest value: for what is only drawn."""
    values = np.asarray(values, np.float64)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    step = (high - low) / LEVELS or 1.0
    codes = np.rint((values - low) / step).astype("<u2")
    return {"shape": list(values.shape), "low": low, "step": step, "codes": _text(codes)}


def floats(values: np.ndarray) -> dict[str, Any]:
    """An array in single precision: for what is read as a number."""
    return {"shape": list(np.shape(values)), "floats": _text(np.asarray(values, "<f4"))}


def rounded(values: Any) -> list[float | None]:
    """To six digits; JSON has no NaN, and null says that there is no number."""
    return [float(f"{float(x):.{DIGITS}g}") if math.isfinite(x) else None for x in values]


def points(values: Any) -> list[list[float]]:
    """Rows of places, to the millimetre."""
    return [[round(float(x), 3) for x in row] for row in values]


def _text(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()
