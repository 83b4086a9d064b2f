"""Section 4.1 and Appendix B.1: the underestimation of a minimised cost value, and how the bias evolves."""

from __future__ import annotations

import numpy as np

from flashbulb.theory.cases import StatementCheck, check_slacks, difference, draw_cases, draw_cmdp
from flashbulb.theory.cmdp import Table, TabularCMDP, backup, least_cost_q, mean_over, value, visitation


def zero_mean_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes (K, *shape) and their probabilities (K,): dependent entries, each of mean zero exactly."""
    probabilities = rng.dirichlet(np.ones(8))
    outcomes = rng.standard_normal((8, *shape)) * 10 ** rng.uniform(-2, 1)
    return outcomes - np.tensordot(probabilities, outcomes, 1), probabilities


def noisy_minimum(count: int, seed: int) -> StatementCheck:
    """Equation 2, with the expectation by enumeration of all outcomes of the noise."""
    slacks = []
    for rng in np.random.default_rng(seed).spawn(count):
        q = rng.standard_normal(rng.integers(2, 7))
        noise, probabilities = zero_mean_noise(rng, q.shape)
        slacks.append(float(q.min() - probabilities @ (q + noise).min(1)))
    return check_slacks("eq. 2", "E min_a'(Q_C + eps_a') <= min_a' Q_C for any zero-mean noise", slacks)


def uniform_noise_bias(count: int, seed: int) -> StatementCheck:
    """The bias of Thrun and Schwartz (1993): equal values, noise uniform on [-e, e], A actions.

    The left side is integrated from the minimum's density by Gauss-Legendre quadrature, exact for polynomials.
    """
    slacks = []
    for rng in np.random.default_rng(seed).spawn(count):
        actions, e = int(rng.integers(2, 12)), float(rng.uniform(0.1, 5))
        nodes, weights = np.polynomial.legendre.leggauss(20)
        density = actions / 2 * ((1 - nodes) / 2) ** (actions - 1)
        slacks.append(difference(e * (weights * density * nodes).sum(), -e * (actions - 1) / (actions + 1)))
    return check_slacks("eq. 2", "equal Q_C, noise uniform on [-e, e]: bias = -e (A-1)/(A+1)", slacks)


def noisy_fixed_point(cmdp: TabularCMDP, noise: np.ndarray, probabilities: np.ndarray) -> Table:
    """The fixed point of greedy backups of noisy values, Q = c + gamma P E[min(Q + eps)], by iteration."""
    q = np.zeros((cmdp.states, cmdp.actions))
    for _ in range(10_000):
        renewed = backup(cmdp, probabilities @ (q + noise).min(2), cmdp.cost)
        if np.abs(renewed - q).max() < 1e-12:
            return renewed
        q = renewed
    raise RuntimeError("noisy value iteration did not converge")


def accumulated_underestimation(count: int, seed: int) -> StatementCheck:
    """The bias of equation 2, propagated by the Bellman equation: no entry of the fixed point exceeds Q*_C."""
    slacks = []
    for rng in np.random.default_rng(seed).spawn(count):
        cmdp = draw_cmdp(rng)
        noise, probabilities = zero_mean_noise(rng, (cmdp.states, cmdp.actions))
        slacks.append(float((least_cost_q(cmdp, cmdp.cost) - noisy_fixed_point(cmdp, noise, probabilities)).min()))
    return check_slacks("section 4.1", "greedy backups of noisy values converge to at most Q*_C everywhere", slacks)


def underestimated_after_a_step(count: int, seed: int) -> StatementCheck:
    """Equation 3 for softmax policies and a small gradient step, starting from its premise with equality.

    With f, f^ the true and the estimated objective, f^ - f changes between the two updated policies by
    -step |grad f^ - grad f|^2 to first order, so the conclusion does not need normalised gradients, as TD3 has them.
    """
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, occupied = case.cmdp, visitation(case.cmdp, case.old)
        true = backup(cmdp, value(cmdp, case.old, cmdp.cost), cmdp.cost)
        estimate = true + case.rng.standard_normal(true.shape)
        step = 1e-3 / np.abs(estimate).max()
        by_truth, by_estimate = (_descend(case.old, occupied, q, step) for q in (true, estimate))
        estimate = estimate - mean_over(occupied, by_truth, estimate) + mean_over(occupied, by_truth, true)
        slacks.append(mean_over(occupied, by_estimate, true - estimate) / step)
    return check_slacks("eq. 3", "small step: unbiased at the true update, so too low at the estimated one", slacks)


def _descend(policy: Table, occupied: np.ndarray, q: Table, step: float) -> Table:
    """One exact gradient step on the logits of a softmax, down E[Q]."""
    gradient = occupied[:, None] * policy * (q - (policy * q).sum(1, keepdims=True))
    moved = policy * np.exp(-step * gradient)
    return moved / moved.sum(1, keepdims=True)


def estimation_bias_lemma(count: int, seed: int) -> StatementCheck:
    """Lemma B.1 against m simulated updates. It holds for any reference table in place of Q*_C, for a beta that changes
    with every update, and for a' greedy or from a policy."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, rng = case.cmdp, case.rng
        alpha, m = float(rng.uniform(0.01, 1)), int(rng.integers(1, 30))
        reference = least_cost_q(cmdp, cmdp.cost)
        first = rng.standard_normal(reference.shape)
        q, targets = first, []
        for n in range(m):
            following = q.min(1) if n % 2 else (case.new * q).sum(1)
            target = backup(cmdp, following, cmdp.cost + 0.9**n * case.intrinsic)
            targets.append(target - reference)  # t_n
            q = (1 - alpha) * q + alpha * target
        weighted = sum((1 - alpha) ** (i - 1) * targets[m - i] for i in range(1, m + 1))
        slacks.append(difference(reference - q, (1 - alpha) ** m * (reference - first) - alpha * weighted))
    return check_slacks("Lemma B.1", "Q* - Q_{n+m} = (1-a)^m (Q* - Q_n) - a sum (1-a)^(i-1) t_{n+m-i}", slacks)


def intrinsic_raises_values(count: int, seed: int) -> StatementCheck:
    """The statement below equation 6, for greedy updates."""
    slacks = []
    for case in draw_cases(count, seed):
        cmdp, rng = case.cmdp, case.rng
        plain = raised = rng.standard_normal((cmdp.states, cmdp.actions))
        for _ in range(50):
            plain = 0.7 * plain + 0.3 * backup(cmdp, plain.min(1), cmdp.cost)
            raised = 0.7 * raised + 0.3 * backup(cmdp, raised.min(1), cmdp.cost + case.intrinsic)
            slacks.append(float((raised - plain).min()))
    return check_slacks("below eq. 6", "from the same start, Q_C^EI >= Q_C after every update", slacks)
