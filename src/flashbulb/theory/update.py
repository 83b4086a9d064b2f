"""Theorem 2 and the step of Appendix A.1: what one update of MICE-CPO may do to the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flashbulb.config import MemoryConfig, TrustRegionConfig
from flashbulb.theory.actual_step import cpo_update
from flashbulb.theory.cases import (
    Check,
    difference,
    draw_cases,
    intrinsic_cost,
    judge,
    sampled_intrinsic_cost,
    softmax,
)
from flashbulb.theory.cmdp import (
    Table,
    TabularCMDP,
    advantage,
    expected_sum,
    kl_divergence,
    mean_over,
    value,
    visitation,
)
from flashbulb.theory.worlds import random_cmdp, two_hazards

SINGLE = 1e-4  # relative; the step itself is computed in single precision


class Update(NamedTuple):
    """One step of CPO from pi_k to pi_{k+1} under the limit d."""

    cmdp: TabularCMDP
    old: Table
    new: Table
    intrinsic: Table  # beta c^I
    limit: float
    region: float  # phi


def surrogate(update: Update, policy: Table, intrinsic: Table) -> float:
    """Left side of the constraint of objective 13: J_C(pi_k) + E_{d^pi_k, pi}[A_C^EI(.|pi_k)] / (1 - gamma)."""
    cmdp, old = update.cmdp, update.old
    a_ei = advantage(cmdp, value(cmdp, old, cmdp.cost), cmdp.cost + intrinsic)
    change = mean_over(visitation(cmdp, old), policy, a_ei) / (1 - cmdp.gamma)
    return expected_sum(cmdp, old, cmdp.cost) + change


def take_step(
    cmdp: TabularCMDP, logits: np.ndarray, intrinsic: Table, room: float, region: float
) -> tuple[np.ndarray, Update]:
    """pi_{k+1} by training's CPO, the limit being `room` above what the surrogate says of pi_k itself."""
    old = softmax(logits)
    a_r = advantage(cmdp, value(cmdp, old, cmdp.reward), cmdp.reward)
    a_ei = advantage(cmdp, value(cmdp, old, cmdp.cost), cmdp.cost + intrinsic)
    config = TrustRegionConfig(kl=region)
    new, _ = cpo_update(logits, visitation(cmdp, old), a_r, a_ei / (1 - cmdp.gamma), -room, config)
    limit = expected_sum(cmdp, old, cmdp.cost + intrinsic) + room
    return new, Update(cmdp, old, softmax(new), intrinsic, limit, region)


def updates(count: int, seed: int) -> Iterator[Update]:
    """Runs of five updates each on random worlds; all start within the limit, so that objective 13 is met.

    One shape of world and two trust regions: each combination is compiled once.
    """
    for rng in np.random.default_rng(seed).spawn(max(count // 5, 1)):
        gamma, region = float(rng.choice([0.8, 0.9, 0.95])), float(rng.choice([0.01, 0.1]))
        cmdp = random_cmdp(8, 3, float(rng.uniform(0, 0.8)), int(rng.integers(2**31)), gamma)
        logits = rng.standard_normal((8, 3))
        for _ in range(5):
            c_i = sampled_intrinsic_cost(cmdp, softmax(logits), rng)
            intrinsic = np.repeat(float(rng.choice([0.1, 1.0, 5.0])) * c_i[:, None], 3, axis=1)
            room = float(rng.choice([0.0, 1.0])) * rng.exponential() * 0.1
            logits, update = take_step(cmdp, logits, intrinsic, room, region)
            yield update


def objective_is_met(count: int, seed: int) -> Check:
    """The theorem's premise is a fact about the step that training takes: its line search sees to both."""
    slacks = []
    for update in updates(count, seed):
        moved = float(visitation(update.cmdp, update.old) @ kl_divergence(update.new, update.old))
        slacks.append(1 - moved / update.region)
        slacks.append((update.limit - surrogate(update, update.new, update.intrinsic)) / max(1.0, abs(update.limit)))
    return judge("obj. 13", "training's CPO step keeps surrogate <= d and KL <= phi", slacks, tolerance=SINGLE)


def theorem_2_slack(update: Update, a_c: Table, intrinsic_sum: float) -> float:
    """d - I + sqrt(2 phi) gamma eps / (1 - gamma)^2 - J_C(pi_{k+1}), eps the largest |E_a~pi_{k+1} a_c|."""
    gamma = update.cmdp.gamma
    epsilon = np.abs((update.new * a_c).sum(1)).max()
    bound = update.limit - intrinsic_sum + np.sqrt(2 * update.region) * gamma * epsilon / (1 - gamma) ** 2
    return float(bound) - expected_sum(update.cmdp, update.new, update.cmdp.cost)


def _advantage_of(update: Update, signal: Table) -> Table:
    return advantage(update.cmdp, value(update.cmdp, update.old, update.cmdp.cost), signal)


def theorem_2_printed_slack(update: Update) -> float:
    """I over trajectories of pi_{k+1}, eps of the extrinsic advantage."""
    own = expected_sum(update.cmdp, update.new, update.intrinsic)
    return theorem_2_slack(update, _advantage_of(update, update.cmdp.cost), own)


def unequal_memory(seed: int, gamma: float = 0.9) -> Update:
    """Two hazards that cost the same, one met 30 times and one twice; the reward draws to the well-known one."""
    cmdp, rng = two_hazards(gamma), np.random.default_rng(seed)
    met = np.array([1] * 30 + [2] * 2)
    c_i = intrinsic_cost(cmdp, np.append(met, 0), met, MemoryConfig(embedding=0), rng)
    intrinsic = np.repeat(c_i[:, None], 2, axis=1)
    logits = np.array([[rng.uniform(0, 1), 0.0], [0.0, 0.0], [0.0, 0.0]])
    return take_step(cmdp, logits, intrinsic, 0.0, 0.01)[1]


def theorem_2_printed(count: int, seed: int) -> Check:
    """Both hazards cost the same, so J_C cannot change and eps = 0; but I grows by the step, and d - I falls
    below J_C. The proof's I is over d^pi_k."""
    slacks = [theorem_2_printed_slack(unequal_memory(seed + i)) for i in range(max(count // 10, 1))]
    return judge("Theorem 2", "as printed (I over pi_{k+1}), two equal hazards", slacks, expected=False)


def theorem_2(count: int, seed: int) -> Check:
    """I over the states of pi_k, as the proof has it; for a c^I of the state alone it is I(pi_k)."""
    slacks = []
    for update in [*updates(count, seed), *(unequal_memory(seed + i) for i in range(5))]:
        met = mean_over(visitation(update.cmdp, update.old), update.new, update.intrinsic) / (1 - update.cmdp.gamma)
        slacks.append(theorem_2_slack(update, _advantage_of(update, update.cmdp.cost), met) / max(1.0, update.limit))
    return judge("Theorem 2", "corrected: I = E_{d^pi_k, a~pi_{k+1}}[beta c^I]/(1-gamma)", slacks, tolerance=SINGLE)


def theorem_2_own_intrinsic(count: int, seed: int) -> Check:
    """I over pi_{k+1} as printed is right with eps of A_C^EI: that is Theorem 1, corrected, in J_C^EI."""
    slacks = []
    for update in [*updates(count, seed), *(unequal_memory(seed + i) for i in range(5))]:
        own = expected_sum(update.cmdp, update.new, update.intrinsic)
        a_ei = _advantage_of(update, update.cmdp.cost + update.intrinsic)
        slacks.append(theorem_2_slack(update, a_ei, own) / max(1.0, update.limit))
    return judge("Theorem 2", "corrected: I as printed, eps of A_C^EI", slacks, tolerance=SINGLE)


def surrogate_is_cpo_with_less_room(count: int, seed: int) -> Check:
    """beta c^I(s) is the same for all actions, so with the exact one-step A_C^EI it adds the constant I(pi_k) to
    the surrogate and nothing to its gradient. It reaches the gradient only through GAE or a critic of C^EI."""
    slacks = []
    for case in draw_cases(count, seed):
        update = Update(case.cmdp, case.old, case.new, case.intrinsic, 0.0, 0.0)
        left = surrogate(update, case.new, case.intrinsic) - surrogate(update, case.new, 0 * case.intrinsic)
        slacks.append(difference(left, expected_sum(case.cmdp, case.old, case.intrinsic)))
    return judge("obj. 13", "its constraint is CPO's with limit d - I(pi_k): g_C^EI = g_C", slacks)


def constant_printed(count: int, seed: int) -> Check:
    slacks = []
    for case in draw_cases(count, seed):
        update = Update(case.cmdp, case.old, case.new, case.intrinsic, 0.0, 0.0)
        printed = expected_sum(case.cmdp, case.old, case.cmdp.cost)
        slacks.append(difference(surrogate(update, case.old, case.intrinsic), printed))
    return judge("App. A.1", "as printed: c = J_C(pi_k) - d is the constraint at theta_k", slacks, expected=False)


def constant(count: int, seed: int) -> Check:
    """The linear model's constant is the surrogate at pi_k itself, which training uses (METHOD.md, section 5)."""
    slacks = []
    for case in draw_cases(count, seed):
        update = Update(case.cmdp, case.old, case.new, case.intrinsic, 0.0, 0.0)
        mended = expected_sum(case.cmdp, case.old, case.cmdp.cost + case.intrinsic)
        slacks.append(difference(surrogate(update, case.old, case.intrinsic), mended))
    return judge("App. A.1", "corrected: c = J_C(pi_k) + I(pi_k) - d", slacks)
