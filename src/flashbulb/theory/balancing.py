"""Proposition 4.1: the balancing factor, checked on training's own `Balance`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flashbulb.config import BalanceConfig
from flashbulb.memory import Balance
from flashbulb.theory.cases import StatementCheck, check_slacks, difference

_WHERE = "Prop. 4.1"


class Transition(NamedTuple):
    """One transition at the n-th update, as in the proposition."""

    extrinsic_target: float  # c^E + gamma E[Q(s', a')]
    c_i: float
    bias: float  # eps_n
    beta: float  # beta_n
    alpha: float
    gamma: float
    n: int

    @property
    def wanted_target(self) -> float:
        """Q'_T = Q_T - alpha eps_n, but never less than the extrinsic target: beta' is clipped at 0."""
        wanted = self.extrinsic_target + self.beta * self.c_i - self.alpha * self.bias
        return max(wanted, self.extrinsic_target)

    def printed_beta(self) -> float:
        return max(self.gamma**self.n * (self.beta - self.alpha * self.bias / self.c_i), 0.0)


def _transitions(count: int, seed: int) -> list[Transition]:
    rng = np.random.default_rng(seed)
    return [
        Transition(
            extrinsic_target=float(rng.exponential(5)),
            c_i=float(rng.uniform(0.01, 1)),
            bias=float(rng.standard_normal() * 3),
            beta=float(rng.exponential()),
            alpha=float(rng.uniform(0.01, 1)),
            gamma=float(rng.uniform(0.5, 0.99)),
            n=int(rng.integers(1, 50)),
        )
        for _ in range(count)
    ]


def modified_target(count: int, seed: int) -> StatementCheck:
    slacks = []
    for t in _transitions(count, seed):
        config = BalanceConfig(initial=t.beta, rate=t.alpha, discount=1.0)
        balance = Balance.start(config).correct(np.array([t.bias]), np.array([t.c_i]), config)
        slacks.append(difference(t.extrinsic_target + balance.beta(config) * t.c_i, t.wanted_target))
    return check_slacks(_WHERE, "without gamma^n: beta' gives max(Q_T - a eps_n, extrinsic target)", slacks)


def modified_target_printed(count: int, seed: int) -> StatementCheck:
    """The factor gamma^n is introduced after the derivation, so the printed beta' does not give Q'_T for n > 0."""
    slacks = [
        difference(t.extrinsic_target + t.printed_beta() * t.c_i, t.wanted_target) for t in _transitions(count, seed)
    ]
    return check_slacks(_WHERE, "as printed, with gamma^n: the same", slacks, expected=False)


def direction_printed(count: int, seed: int) -> StatementCheck:
    """Printed: "the direction of the update depends solely on eps_n". Slack: the change of beta' against the bias."""
    underestimated = (t._replace(bias=-0.1 * abs(t.bias)) for t in _transitions(count, seed))
    slacks = [t.printed_beta() - t.beta for t in underestimated]
    return check_slacks(_WHERE, "as printed: eps_n < 0 raises beta' above beta_n", slacks, expected=False)


def direction(count: int, seed: int) -> StatementCheck:
    """The undiscounted b_n moves against the bias for every n."""
    slacks = []
    for t in _transitions(count, seed):
        config = BalanceConfig(initial=t.beta, rate=t.alpha, discount=t.gamma)
        balance = Balance(np.asarray(t.beta), np.asarray(t.n))
        moved = balance.correct(np.array([t.bias]), np.array([t.c_i]), config)
        slacks.append(float((balance.b - moved.b) * np.sign(t.bias)))
    return check_slacks(_WHERE, "corrected: the undiscounted b_n moves against eps_n, whatever n", slacks)


def compounded(t: Transition) -> float:
    """The printed recursion from beta_0 = beta over n updates without bias."""
    still = t._replace(bias=0.0)
    for i in range(t.n):
        still = still._replace(beta=still._replace(n=i).printed_beta())
    return still.beta


def recursion_printed(count: int, seed: int) -> StatementCheck:
    """Used as the next beta_n, beta' decays as gamma^(n(n-1)/2); the factor of the last update is gamma^(n-1)."""
    slacks = [difference(compounded(t), t.gamma ** (t.n - 1) * t.beta) for t in _transitions(count, seed)]
    return check_slacks(
        _WHERE, "as printed and iterated: with eps = 0, beta_n = gamma^(n-1) beta_0", slacks, expected=False
    )


def recursion(count: int, seed: int) -> StatementCheck:
    """As implemented: the clip is inside the recursion, as printed, and gamma^n outside."""
    rng = np.random.default_rng(seed)
    slacks = []
    for t in _transitions(count, seed):
        config = BalanceConfig(initial=t.beta, rate=t.alpha, discount=t.gamma)
        balance, biases = Balance.start(config), rng.standard_normal(t.n)
        for bias in biases:
            balance = balance.correct(np.array([bias]), np.array([t.c_i]), config)
        # A walk clipped at 0 equals the free walk minus its running minimum, where that is below 0.
        walk = t.beta - t.alpha * np.append(0.0, biases.cumsum()) / t.c_i
        slacks.append(difference(balance.beta(config), t.gamma ** len(biases) * (walk[-1] - min(walk.min(), 0.0))))
    return check_slacks(_WHERE, "corrected: beta_n = gamma^n b_n, b_{n+1} = max(b_n - a eps_n/c^I, 0)", slacks)


def one_factor_for_all(count: int, seed: int) -> StatementCheck:
    """The proposition has a beta per transition, training one for all: its change is the least-squares fit, computed
    here by `numpy.linalg.lstsq`."""
    slacks = []
    for rng in np.random.default_rng(seed).spawn(count):
        bias, c_i = rng.standard_normal(30), rng.uniform(0, 1, 30) * (rng.random(30) < 0.7)
        c_i[0] = 0.5
        config = BalanceConfig(initial=50.0, rate=float(rng.uniform(0.01, 1)), discount=1.0)
        moved = Balance.start(config).correct(bias, c_i, config)
        best = np.linalg.lstsq(c_i[:, None], -config.rate * bias, rcond=None)[0][0]
        slacks.append(difference(moved.b, 50.0 + best))
    return check_slacks(_WHERE, "one beta for all states: its change times c^I is the best fit to -a eps", slacks)
