"""Balancing factor beta: how much the intrinsic cost may add, corrected by the bias it causes (Prop. 4.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.config import BalanceConfig


class Balance(NamedTuple):
    """The undiscounted b_n and n.

    The proposition's beta' = max(gamma^n (beta_n - alpha eps_n / c^I), 0) must not be iterated as it stands:
    gamma^n inside the recursion compounds to gamma^(n^2/2) and kills beta in a handful of updates. So b_n is
    the state, and gamma^n is applied when beta is read. The maximum with 0 belongs to every update, as in the
    proposition: a factor that could run far below 0 would take as long to come back when it is needed.
    """

    b: np.ndarray  # (), or (env,) after the first update if states have factors of their own
    updates: np.ndarray  # () n

    @classmethod
    def start(cls, config: BalanceConfig) -> Balance:
        return cls(np.asarray(config.initial, np.float64), np.asarray(0, np.int64))

    def beta(self, config: BalanceConfig) -> Any:
        """beta_n, a float, or one for each environment."""
        weight = config.discount ** int(self.updates)
        return weight * (np.asarray(self.b) if np.ndim(self.b) else float(self.b))

    def correct(self, bias: np.ndarray, intrinsic: np.ndarray, config: BalanceConfig) -> Balance:
        """b_{n+1} = max(b_n - alpha * (mean of eps / c^I), 0), over the states with c^I > 0."""
        b = max(float(self.b) - config.rate * correction(bias, intrinsic), 0.0)
        return Balance(np.asarray(b), self.updates + 1)

    def follow(self, beta: np.ndarray, config: BalanceConfig) -> Balance:
        """b_{n+1} of factors (env,) that were smoothed while gamma^n was on them (`algorithms/state_factor.py`)."""
        weight = config.discount ** int(self.updates)
        b = np.asarray(beta, np.float64) / weight if weight > 0 else np.zeros(len(beta))
        return Balance(b, self.updates + 1)


def correction(bias: np.ndarray, intrinsic: np.ndarray) -> float:
    """The change of beta that best cancels the bias: mean of eps / c^I weighted by (c^I)^2.

    A plain mean of eps / c^I is ruled by states far from all danger, where c^I is next to nothing. With the
    weight it is the least-squares answer to "which x makes eps - x c^I small", and never divides by a tiny c^I.
    """
    intrinsic = np.asarray(intrinsic, np.float64).ravel()
    energy = float(np.square(intrinsic).sum())
    if energy <= np.finfo(np.float32).tiny:
        return 0.0
    return float((np.asarray(bias, np.float64).ravel() * intrinsic).sum() / energy)
