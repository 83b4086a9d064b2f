"""Tabular Q-learning of costs: plain, with two tables, and with intrinsic cost (Algorithm 1 without a policy).

Each iteration samples a trajectory under uniformly random actions, stores its unsafe states in the memory, and updates
the table transition by transition. Values in targets have zero-mean noise, uniform on [-noise, noise] and independent
for every action: it stands for the error of function approximation, and its effect is known. The memory and the
balancing factor are those of training.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from flashbulb.config import BalanceConfig, MemoryConfig
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser
from flashbulb.theory.cmdp import Table, TabularCMDP, least_cost_q


class LearningSchedule(NamedTuple):
    """Iterations, steps and step size; the i-th update of a pair (from 0) has step size max((1 + i)^-power, floor)."""

    iterations: int = 400
    steps: int = 2000
    power: float = 0.7
    floor: float = 0.0


class Trace(NamedTuple):
    """One run: the final table, and after each iteration the mean of Q - Q*_C over all states and over states with a
    cost, and beta."""

    q: Table
    bias: np.ndarray
    bias_unsafe: np.ndarray
    beta: np.ndarray
    c_i: np.ndarray  # (S,) at the end


@njit(cache=True)
def _walk(cumulative: np.ndarray, state: int, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform actions; one step in twenty restarts in a uniform state, so that all pairs are visited for ever."""
    states, actions, _ = cumulative.shape
    path = np.empty((3, len(draws)), np.int64)
    for t in range(len(draws)):
        if draws[t, 0] < 0.05:
            state = int(draws[t, 0] / 0.05 * states)
        action = int(draws[t, 1] * actions)
        follower = min(np.searchsorted(cumulative[state, action], draws[t, 2], side="right"), states - 1)
        path[0, t], path[1, t], path[2, t] = state, action, follower
        state = follower
    return path[0], path[1], path[2]


@njit(cache=True)
def _greedy_updates(
    q: np.ndarray,
    visits: np.ndarray,
    path: tuple[np.ndarray, np.ndarray, np.ndarray],
    cost: np.ndarray,
    gamma: float,
    noise: np.ndarray,
    power: float,
    floor: float,
) -> None:
    """Q(s, a) <- (1 - a) Q(s, a) + a (c + gamma min_a' (Q(s', a') + eps_a'))."""
    for t in range(len(path[0])):
        s, a, follower = path[0][t], path[1][t], path[2][t]
        step = max((1.0 + visits[s, a]) ** -power, floor)
        visits[s, a] += 1
        q[s, a] += step * (cost[s, a] + gamma * (q[follower] + noise[t]).min() - q[s, a])


@njit(cache=True)
def _twin_updates(
    q: np.ndarray,
    visits: np.ndarray,
    path: tuple[np.ndarray, np.ndarray, np.ndarray],
    cost: np.ndarray,
    gamma: float,
    noise: np.ndarray,
    power: float,
    floor: float,
) -> None:
    """Twin critics for costs: the first of two tables (2, S, A) chooses a', the larger of both values is the target."""
    for t in range(len(path[0])):
        s, a, follower = path[0][t], path[1][t], path[2][t]
        step = max((1.0 + visits[s, a]) ** -power, floor)
        visits[s, a] += 1
        first, second = q[0, follower] + noise[0, t], q[1, follower] + noise[1, t]
        chosen = first.argmin()
        target = cost[s, a] + gamma * max(first[chosen], second[chosen])
        q[0, s, a] += step * (target - q[0, s, a])
        q[1, s, a] += step * (target - q[1, s, a])


def _uniform_noise(rng: np.random.Generator, shape: tuple[int, ...], noise: float) -> np.ndarray:
    return rng.uniform(-noise, noise, shape) if noise else np.zeros(shape)


def learn_with_intrinsic_cost(
    cmdp: TabularCMDP,
    balance_config: BalanceConfig,
    memory_config: MemoryConfig,
    schedule: LearningSchedule,
    noise: float,
    rng: np.random.Generator,
) -> Trace:
    """Equation 6 with beta_n of Proposition 4.1, eps_n measured against the exact Q*_C. beta_0 = 0 is plain
    Q-learning."""
    optimum, cumulative = least_cost_q(cmdp, cmdp.cost), cmdp.transitions.cumsum(2)
    normalise = Normaliser.empty(cmdp.features.shape[1]).absorb(cmdp.features).frozen()
    memory = FlashbulbMemory.empty(cmdp.features.shape[1], memory_config, rng)
    balance, unsafe = Balance.start(balance_config), cmdp.cost > 0
    q, visits, state = np.zeros_like(optimum), np.zeros(optimum.shape), 0
    features, c_i = cmdp.features.astype(np.float32), np.zeros(cmdp.states)
    records = np.zeros((schedule.iterations, 3))
    for n in range(schedule.iterations):
        path = _walk(cumulative, state, rng.random((schedule.steps, 3)))
        states, actions, followers = path
        state = int(followers[-1])
        memory = memory.add(cmdp.features[states[cmdp.cost[states, actions] > 0]], n, memory_config)
        single, memory = memory.intrinsic_cost(features, normalise, memory_config)
        c_i, beta = single.astype(np.float64), balance.beta(balance_config)
        draws = _uniform_noise(rng, (schedule.steps, cmdp.actions), noise)
        costs = cmdp.cost + beta * c_i[:, None]
        _greedy_updates(q, visits, path, costs, cmdp.gamma, draws, schedule.power, schedule.floor)
        bias = q - optimum
        balance = balance.correct(bias[states, actions], c_i[states], balance_config)
        records[n] = bias.mean(), bias[unsafe].mean(), beta
    return Trace(q, records[:, 0], records[:, 1], records[:, 2], c_i)


def learn_with_twin_maximum(
    cmdp: TabularCMDP, schedule: LearningSchedule, noise: float, shared: float, rng: np.random.Generator
) -> Trace:
    """Two tables whose noise is equal with probability `shared`, as for correlated networks."""
    optimum, cumulative = least_cost_q(cmdp, cmdp.cost), cmdp.transitions.cumsum(2)
    q, visits, state = np.zeros((2, *optimum.shape)), np.zeros(optimum.shape), 0
    records = np.zeros((schedule.iterations, 3))
    for n in range(schedule.iterations):
        path = _walk(cumulative, state, rng.random((schedule.steps, 3)))
        state = int(path[2][-1])
        draws = _uniform_noise(rng, (2, schedule.steps, cmdp.actions), noise)
        draws[1] = np.where(rng.random((schedule.steps, 1)) < shared, draws[0], draws[1])
        _twin_updates(q, visits, path, cmdp.cost, cmdp.gamma, draws, schedule.power, schedule.floor)
        bias = q.max(0) - optimum
        records[n] = bias.mean(), bias[cmdp.cost > 0].mean(), 0.0
    return Trace(q.max(0), records[:, 0], records[:, 1], records[:, 2], np.zeros(cmdp.states))
