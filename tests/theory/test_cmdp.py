"""Exact quantities against hand calculation, brute force and sums over time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flashbulb.config import MemoryConfig
from flashbulb.errors import UsageError
from flashbulb.theory import cases
from flashbulb.theory.cases import draw_cases, intrinsic_cost, sampled_intrinsic_cost
from flashbulb.theory.cmdp import (
    TabularCMDP,
    advantage,
    backup,
    expected_sum,
    kl_divergence,
    least_cost_q,
    mean_over,
    sum_by_time,
    total_variation,
    value,
    visitation,
)
from flashbulb.theory.example_cmdps import EXAMPLES, cliff, corridor, random_cmdp


@pytest.fixture
def loop() -> TabularCMDP:
    """State 0 stays (cost 0) or goes (cost 1) to state 1, which costs 2 and returns. gamma 1/2."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, 0, 0] = transitions[0, 1, 1] = transitions[1, :, 0] = 1.0
    cost = np.array([[0.0, 1.0], [2.0, 2.0]])
    return TabularCMDP(transitions, -cost, cost, np.array([1.0, 0.0]), 0.5, np.eye(2))


def test_hand_calculation(loop: TabularCMDP) -> None:
    go = np.array([[0.0, 1.0], [1.0, 0.0]])
    # V0 = 1 + V1/2, V1 = 2 + V0/2, so V0 = 8/3, V1 = 10/3; half of the time's weight at even steps is 2/3.
    v = value(loop, go, loop.cost)
    np.testing.assert_allclose(v, [8 / 3, 10 / 3])
    np.testing.assert_allclose(visitation(loop, go), [2 / 3, 1 / 3])
    np.testing.assert_allclose(backup(loop, v, loop.cost), [[4 / 3, 8 / 3], [10 / 3, 10 / 3]])
    np.testing.assert_allclose(advantage(loop, v, loop.cost), [[-4 / 3, 0], [0, 0]], atol=1e-15)
    assert expected_sum(loop, go, loop.cost) == pytest.approx(8 / 3)
    np.testing.assert_allclose(least_cost_q(loop, loop.cost), [[0, 2], [2, 2]])


def test_values_are_sums_over_time_and_means_over_visitation() -> None:
    for case in draw_cases(30, seed=5):
        cmdp = case.cmdp
        j = expected_sum(cmdp, case.new, cmdp.cost)
        assert sum_by_time(cmdp, case.new, cmdp.cost) == pytest.approx(j, rel=1e-10)
        d = visitation(cmdp, case.new)
        assert d.sum() == pytest.approx(1)
        assert d.min() >= -1e-12
        assert mean_over(d, case.new, cmdp.cost) / (1 - cmdp.gamma) == pytest.approx(j, rel=1e-10)


def test_least_cost_is_the_best_of_all_deterministic_policies() -> None:
    for seed in range(10):
        cmdp = random_cmdp(4, 3, 0.3, seed)
        policies = itertools.product(range(3), repeat=4)
        least = np.min([value(cmdp, np.eye(3)[list(choice)], cmdp.cost) for choice in policies], axis=0)
        np.testing.assert_allclose(least_cost_q(cmdp, cmdp.cost).min(1), least, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_distributions_with_a_cost(name: str) -> None:
    cmdp = EXAMPLES[name]()
    np.testing.assert_allclose(cmdp.transitions.sum(2), 1)
    assert cmdp.start.sum() == 1
    assert (cmdp.cost > 0).any()


def test_cliff_and_corridor_reward_the_unsafe_path() -> None:
    for cmdp in (cliff(), corridor()):
        everywhere_right = np.tile(np.eye(4)[1], (cmdp.states, 1))
        unsafe_cost = expected_sum(cmdp, everywhere_right, cmdp.cost)
        safe_cost = cmdp.start @ least_cost_q(cmdp, cmdp.cost).min(1)
        assert safe_cost < unsafe_cost / 2


def test_random_cmdps_follow_their_seed_and_sparsity() -> None:
    one, same, other = random_cmdp(12, 4, 0.8, 3), random_cmdp(12, 4, 0.8, 3), random_cmdp(12, 4, 0.8, 4)
    np.testing.assert_array_equal(one.transitions, same.transitions)
    assert not np.array_equal(one.transitions, other.transitions)
    np.testing.assert_allclose(one.transitions.sum(2), 1)
    assert (one.transitions == 0).mean() > 0.65
    assert (random_cmdp(12, 4, 0.0, 3).transitions > 0).all()


@pytest.mark.parametrize(("states", "actions", "sparsity"), [(1, 2, 0.5), (3, 1, 0.5), (3, 2, 1.0), (3, 2, -0.1)])
def test_impossible_sizes_are_refused(states: int, actions: int, sparsity: float) -> None:
    with pytest.raises(UsageError, match="sparsity" if states > 1 and actions > 1 else "states, actions"):
        random_cmdp(states, actions, sparsity, 0)


def test_divergences() -> None:
    p, q = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(total_variation(p, q), [0.25, 0.5])
    np.testing.assert_allclose(kl_divergence(p, q), [0.5 * np.log(2) + 0.5 * np.log(2 / 3), np.log(2)])


def test_intrinsic_cost_of_states_is_equation_4() -> None:
    """Equation 4 written out for the cliff: every cell against the remembered cells, with standardised features."""
    cmdp, unsafe = cliff(), np.array([17, 17, 18])
    everything = np.arange(cmdp.states)
    config = MemoryConfig(embedding=0, xi=0.1)
    got = intrinsic_cost(cmdp, everything, unsafe, config, np.random.default_rng(0))
    seen = (cmdp.features - cmdp.features.mean(0)) / cmdp.features.std(0)
    squared = ((seen[:, None] - seen[unsafe]) ** 2).sum(2)
    np.testing.assert_allclose(got, np.sqrt((0.1 / (squared + 0.1)).sum(1) / 10), rtol=1e-5)


@pytest.mark.parametrize("samples", [7, 300])
def test_the_sampled_intrinsic_cost_visits_as_many_states_as_asked_for(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = []

    def recorded(cmdp: TabularCMDP, visited: np.ndarray, unsafe: np.ndarray, *others: object) -> np.ndarray:
        visits.append((len(visited), len(unsafe)))
        return np.zeros(cmdp.states)

    monkeypatch.setattr(cases, "intrinsic_cost", recorded)
    policy = np.full((4, 3), 1 / 3)
    sampled_intrinsic_cost(random_cmdp(4, 3, 0.0, 0), policy, np.random.default_rng(0), samples)
    assert visits == [(samples, samples)], "without sparsity every pair has a cost"
