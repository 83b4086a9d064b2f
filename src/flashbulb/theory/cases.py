"""The result of a check, and the random CMDPs, policies and intrinsic costs on which statements are checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashbulb.config import MemoryConfig
from flashbulb.memory import FlashbulbMemory
from flashbulb.memory.intrinsic_cost import Distance
from flashbulb.normaliser import Normaliser
from flashbulb.theory.cmdp import Table, TabularCMDP, visitation
from flashbulb.theory.example_cmdps import EXAMPLES, random_cmdp

ROUNDING = 1e-9  # relative; double precision, condition numbers up to about 1e2


class StatementCheck(NamedTuple):
    """A statement of the paper and the result of its check."""

    where: str  # in the paper
    statement: str
    expected: bool  # False for printed statements that are known to be wrong
    cases: int
    worst_slack: float  # of an inequality: right minus left; of an identity: minus the largest difference
    holds: bool

    @property
    def is_unexpected(self) -> bool:
        return self.holds != self.expected


def check_slacks(
    where: str, statement: str, slacks: list[float], expected: bool = True, tolerance: float = ROUNDING
) -> StatementCheck:
    """The statement holds if no slack is below minus the tolerance."""
    worst = float(np.min(slacks))  # NaN if any slack is, and then the statement does not hold
    return StatementCheck(where, statement, expected, len(slacks), worst, bool(worst >= -tolerance))


def difference(left: object, right: object) -> float:
    """Slack of an identity: minus the largest difference, relative to the size of the numbers."""
    a, b = np.asarray(left, float), np.asarray(right, float)
    return -float(np.abs(a - b).max() / max(1.0, np.abs(a).max(), np.abs(b).max()))


class Case(NamedTuple):
    cmdp: TabularCMDP
    old: Table  # pi, or pi_k
    new: Table  # pi', or pi_{k+1}
    intrinsic: Table  # beta c^I as a signal (S, A); it depends on the state alone
    rng: np.random.Generator


def intrinsic_cost(
    cmdp: TabularCMDP, visited: np.ndarray, unsafe: np.ndarray, config: MemoryConfig, rng: np.random.Generator
) -> np.ndarray:
    """c^I of every state (S,), by `FlashbulbMemory` after it has stored `unsafe` among the `visited` states."""
    normalise = Normaliser.empty(cmdp.features.shape[1]).absorb(cmdp.features[visited]).frozen()
    memory = FlashbulbMemory.empty(cmdp.features.shape[1], config, rng).add(cmdp.features[unsafe], 0, config)
    cost, _ = memory.intrinsic_cost(cmdp.features.astype(np.float32), normalise, config)
    return cost.astype(np.float64)


def sampled_intrinsic_cost(
    cmdp: TabularCMDP, policy: Table, rng: np.random.Generator, samples: int = 100
) -> np.ndarray:
    """c^I after an iteration with `samples` states drawn from d^pi, of which those with a cost are remembered."""
    occupied = np.maximum(visitation(cmdp, policy), 0)
    visited = rng.choice(cmdp.states, size=samples, p=occupied / occupied.sum())
    # Costs depend on the action too: a state is unsafe if the sampled action has a cost.
    chosen = (rng.random((samples, 1)) > policy[visited].cumsum(1)[:, :-1]).sum(1)
    unsafe = visited[cmdp.cost[visited, chosen] > 0]
    distances: tuple[Distance, ...] = ("raw", "mean", "own-mean")
    distance = distances[rng.integers(3)]
    config = MemoryConfig(embedding=int(rng.integers(0, 4)), xi=float(10 ** rng.uniform(-3, 0)), distance=distance)
    return intrinsic_cost(cmdp, visited, unsafe, config, rng)


def draw_cmdp(rng: np.random.Generator) -> TabularCMDP:
    """A random CMDP, or with probability 1/8 one of the named examples."""
    gamma = float(rng.choice([0.5, 0.9, 0.95, 0.99]))
    if rng.random() < 1 / 8:
        return EXAMPLES[str(rng.choice(list(EXAMPLES)))](gamma)
    states, actions = int(rng.integers(2, 16)), int(rng.integers(2, 6))
    return random_cmdp(states, actions, float(rng.uniform(0, 0.9)), int(rng.integers(2**31)), gamma)


def softmax(logits: np.ndarray) -> Table:
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def draw_cases(count: int, seed: int) -> Iterator[Case]:
    """Pairs of policies, from almost equal to unrelated, on CMDPs of all kinds."""
    for rng in np.random.default_rng(seed).spawn(count):
        cmdp = draw_cmdp(rng)
        logits = 2 * rng.standard_normal((cmdp.states, cmdp.actions))
        change = 10 ** rng.uniform(-3, 0.5) * rng.standard_normal(logits.shape)
        beta = float(rng.choice([0.1, 1.0, 5.0]))
        old = softmax(logits)
        c_i = sampled_intrinsic_cost(cmdp, old, rng)
        intrinsic = np.repeat(beta * c_i[:, None], cmdp.actions, axis=1)
        yield Case(cmdp, old, softmax(logits + change), intrinsic, rng)
