"""Finite CMDPs with exact solutions: every quantity of section 3 of the paper by one linear solve.

A policy is its table pi(a|s), shape (S, A). A *signal* is a quantity that is summed along a trajectory, shape (S, A):
the reward, the extrinsic cost, beta c^I, or the sum of the last two. A *value* is any function of the state, (S,).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Table = np.ndarray


class TabularCMDP(NamedTuple):
    """(S, A, R, C, P, rho, gamma), and the observation of each state."""

    transitions: np.ndarray  # (S, A, S) P(s'|s, a)
    reward: np.ndarray  # (S, A)
    cost: np.ndarray  # (S, A) c^E
    start: np.ndarray  # (S,) rho
    gamma: float
    features: np.ndarray  # (S, n) observations

    @property
    def states(self) -> int:
        return self.transitions.shape[0]

    @property
    def actions(self) -> int:
        return self.transitions.shape[1]


def state_transitions(cmdp: TabularCMDP, policy: Table) -> np.ndarray:
    """P_pi(s'|s) = sum over a of pi(a|s) P(s'|s, a), rows summing to one."""
    return np.einsum("sa,sat->st", policy, cmdp.transitions)


def value(cmdp: TabularCMDP, policy: Table, signal: Table) -> np.ndarray:
    """V^pi = (I - gamma P_pi)^-1 E_a[signal]."""
    system = np.eye(cmdp.states) - cmdp.gamma * state_transitions(cmdp, policy)
    return np.linalg.solve(system, (policy * signal).sum(1))


def backup(cmdp: TabularCMDP, values: np.ndarray, signal: Table) -> Table:
    """signal(s, a) + gamma E_s'[values(s')]; for values = V^pi this is Q^pi."""
    return signal + cmdp.gamma * cmdp.transitions @ values


def advantage(cmdp: TabularCMDP, values: np.ndarray, signal: Table) -> Table:
    """E_s'[signal + gamma values(s') - values(s)]: A^pi for values = V^pi of the same signal, and A_C^EI for
    values = V_C^pi and signal = c^E + beta c^I."""
    return backup(cmdp, values, signal) - values[:, None]


def visitation(cmdp: TabularCMDP, policy: Table) -> np.ndarray:
    """d^pi = (1 - gamma) (I - gamma P_pi^T)^-1 rho, a distribution over states."""
    system = np.eye(cmdp.states) - cmdp.gamma * state_transitions(cmdp, policy).T
    return (1 - cmdp.gamma) * np.linalg.solve(system, cmdp.start)


def expected_sum(cmdp: TabularCMDP, policy: Table, signal: Table) -> float:
    """J(pi): the expected discounted sum of the signal from the start."""
    return float(cmdp.start @ value(cmdp, policy, signal))


def sum_by_time(cmdp: TabularCMDP, policy: Table, signal: Table, until: float = 1e-15) -> float:
    """E over trajectories of sum gamma^t signal(s_t, a_t), by following P(s_t = s) step by step.

    The same number as `expected_sum` without a linear solve, as an independent reference.
    """
    step, average = state_transitions(cmdp, policy).T, (policy * signal).sum(1)
    occupied, weight, total = cmdp.start, 1.0, 0.0
    while weight > until * (1 - cmdp.gamma):
        total += weight * float(occupied @ average)
        occupied, weight = step @ occupied, weight * cmdp.gamma
    return total


def least_cost_q(cmdp: TabularCMDP, cost: Table) -> Table:
    """Q*_C of the greedy update: the smallest cost-to-go over all policies, by policy iteration (exact)."""
    greedy = np.zeros(cmdp.states, np.int64)
    while True:
        values = value(cmdp, np.eye(cmdp.actions)[greedy], cost)
        q = backup(cmdp, values, cost)
        # Change an action only for a real gain, so that ties cannot cause a cycle.
        better = q.min(1) < values - 1e-12 * (1 + np.abs(values))
        if not better.any():
            return q
        greedy = np.where(better, q.argmin(1), greedy)


def mean_over(distribution: np.ndarray, policy: Table, signal: Table) -> float:
    """E over s of the distribution and a of the policy."""
    return float(distribution @ (policy * signal).sum(1))


def total_variation(p: Table, q: Table) -> np.ndarray:
    """D_TV of each state."""
    return np.abs(p - q).sum(1) / 2


def kl_divergence(p: Table, q: Table) -> np.ndarray:
    """D_KL(p || q) of each state; q must not vanish where p does not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return terms.sum(1)
