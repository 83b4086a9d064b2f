"""What MuJoCo's contact model is to every robot that compiled code of our own moves."""

from __future__ import annotations

from flashbulb.jit import jit_helper


@jit_helper
def impedance(x: float, soft: float, stiff: float) -> float:
    """The impedance d, which grows from soft to stiff with the depth of a contact in units of its width (power 2)."""
    y = 1.0 if x >= 1.0 else 2 * x * x if x <= 0.5 else 1 - 2 * (1 - x) * (1 - x)
    return soft + y * (stiff - soft)


@jit_helper
def narrow(low: float, high: float, t: float, first: float, second: float) -> tuple[float, float, float]:
    """A step of Newton's method towards the minimum along a line, within a bracket: the bracket, and the next t."""
    if first < 0.0:
        low = t
    else:
        high = t
    t -= first / second
    if not low < t < high:
        t = 0.5 * (low + high)
    return low, high, t
