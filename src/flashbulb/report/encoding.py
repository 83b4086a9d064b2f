"""Numbers and JSON as short text, so that a report on many runs is still one small file."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

LEVELS = 2**16 - 1
DIGITS = 6  # significant digits of numbers that are shown or drawn


def quantised(values: np.ndarray) -> dict[str, Any]:
    """An array in 16 bits per number between its minimum and its maximum, for what is only drawn."""
    values = np.asarray(values, np.float64)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    step = (high - low) / LEVELS or 1.0
    codes = np.rint((values - low) / step).astype("<u2")
    return {"shape": list(values.shape), "low": low, "step": step, "codes": _base64(codes)}


def floats(values: np.ndarray) -> dict[str, Any]:
    """An array in single precision, for what is shown as a number."""
    return {"shape": list(np.shape(values)), "floats": _base64(np.asarray(values, "<f4"))}


def rounded(values: Any) -> list[float | None]:
    """Numbers to six digits; a missing one is null, as JSON has no NaN."""
    return [float(f"{float(x):.{DIGITS}g}") if math.isfinite(x) else None for x in values]


def points(values: Any) -> list[list[float]]:
    """Positions to the millimetre."""
    return [[round(float(x), 3) for x in row] for row in values]


def embedded_json(data: Any) -> str:
    """JSON without any character that an HTML parser could take for markup."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()
