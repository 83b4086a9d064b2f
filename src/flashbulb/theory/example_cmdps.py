"""Example CMDPs: random ones, a cliff, a corridor with a hazard, and two hazards of equal cost."""

from __future__ import annotations

import numpy as np

from flashbulb.errors import UsageError
from flashbulb.theory.cmdp import TabularCMDP

CLIFF = """\
........
........
SCCCCCCG
"""
CORRIDOR = """\
S..HHH..G
.........
"""
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


def random_cmdp(states: int, actions: int, sparsity: float, seed: int, gamma: float = 0.9) -> TabularCMDP:
    """A random CMDP; a share of about `sparsity` of the successors is impossible, and of the states has no cost.

    At least one state has a cost, and each pair has at least one successor.
    """
    if states < 2 or actions < 2:
        raise UsageError(f"states, actions: ({states}, {actions}) is too few; there must be at least 2 of each.")
    if not 0 <= sparsity < 1:
        raise UsageError(f"sparsity: {sparsity!r} is not allowed; it must be at least 0 and below 1.")
    rng = np.random.default_rng(seed)
    possible = rng.random((states, actions, states)) >= sparsity
    successor = rng.integers(states, size=(states, actions))
    np.put_along_axis(possible, successor[..., None], True, axis=-1)
    weights = rng.exponential(size=possible.shape) * possible
    costly = rng.random(states) >= sparsity
    costly[rng.integers(states)] = True
    return TabularCMDP(
        weights / weights.sum(-1, keepdims=True),
        rng.standard_normal((states, actions)),
        rng.exponential(size=(states, actions)) * costly[:, None],
        rng.dirichlet(np.ones(states)),
        gamma,
        rng.standard_normal((states, 3)),
    )


def gridworld(layout: str, slip: float, gamma: float) -> TabularCMDP:
    """A gridworld from its layout: S start, G goal (reward 1, then back to the start), H hazard (cost 1),
    C cliff (cost 1, then back to the start). With probability `slip` the move is in a random direction."""
    rows = layout.split()
    cells = [(y, x) for y, row in enumerate(rows) for x in range(len(row))]
    index = {cell: s for s, cell in enumerate(cells)}
    kind = np.array([rows[y][x] for y, x in cells])
    start = int(np.flatnonzero(kind == "S")[0])
    intended = np.zeros((len(cells), len(_MOVES), len(cells)))
    for s, (y, x) in enumerate(cells):
        for a, (dy, dx) in enumerate(_MOVES):
            away = kind[s] in "GC"
            intended[s, a, start if away else index.get((y + dy, x + dx), s)] = 1.0
    transitions = (1 - slip) * intended + slip * intended.mean(1, keepdims=True)
    everywhere = np.ones((1, len(_MOVES)))
    return TabularCMDP(
        transitions,
        (kind == "G")[:, None] * everywhere,
        np.isin(kind, ["H", "C"])[:, None] * everywhere,
        np.eye(len(cells))[start],
        gamma,
        np.array(cells, float),
    )


def cliff(gamma: float = 0.9) -> TabularCMDP:
    """The short path to the goal runs along a cliff, with a risk of slipping into it."""
    return gridworld(CLIFF, slip=0.2, gamma=gamma)


def corridor(gamma: float = 0.9) -> TabularCMDP:
    """The short path leads through the hazard, a longer one around it."""
    return gridworld(CORRIDOR, slip=0.1, gamma=gamma)


def two_hazards(gamma: float = 0.9) -> TabularCMDP:
    """Each action leads to an absorbing hazard of its own. Both cost 1 per step; the first has a reward.

    No action is safer than another (A_C = 0 everywhere), but a memory with more states of one hazard gives them
    different intrinsic costs: the counterexample to Theorem 2 as printed.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    cost = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    reward = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    return TabularCMDP(transitions, reward, cost, np.array([1.0, 0.0, 0.0]), gamma, np.array([[0.0], [-3.0], [3.0]]))


EXAMPLES = {"cliff": cliff, "corridor": corridor, "two-hazards": two_hazards}
