"""Kernel, intrinsic cost and anticipation against loops written from the paper."""

import numpy as np
import pytest

from flashbulb.memory.intrinsic_cost import anticipation, area_under_curve, kernel, pseudo_count_cost, rescale


def test_kernel_is_equation_5():
    assert kernel(np.array(0.0), 1e-3) == 1.0
    assert kernel(np.array(1e-3), 1e-3) == pytest.approx(0.5)
    assert kernel(np.array(np.inf), 1e-3) == 0.0


def test_pseudo_count_lies_between_nothing_and_one():
    assert pseudo_count_cost(np.zeros((1, 10)), 10, 1e-3).item() == 1.0
    assert pseudo_count_cost(np.full((1, 10), np.inf), 10, 1e-3).item() == 0.0
    squared = np.random.default_rng(0).random((50, 10))
    by_hand = [np.sqrt(sum(0.1 / (l2 + 0.1) for l2 in row)) / np.sqrt(10) for row in squared]
    np.testing.assert_allclose(pseudo_count_cost(squared, 10, 0.1), by_hand, rtol=1e-12)


def test_a_lonely_memory_weighs_less_than_a_full_one():
    one = np.array([[0.0] + [np.inf] * 9])
    assert pseudo_count_cost(one, 10, 1e-3).item() == pytest.approx(np.sqrt(1 / 10))


def test_rescaled_distances():
    squared = np.array([[1.0, 4.0], [9.0, np.inf]])
    np.testing.assert_allclose(rescale(squared, "raw", 2.0), squared)
    np.testing.assert_allclose(rescale(squared, "mean", 2.0), squared / 2)
    np.testing.assert_allclose(rescale(squared, "own-mean", 2.0), [[1 / 1.5**2, 4 / 1.5**2], [1.0, np.inf]])


def test_only_the_scale_free_kernel_ignores_the_unit_of_distance():
    squared = np.random.default_rng(1).random((20, 5))
    for distance, alike in (("raw", False), ("mean", True), ("own-mean", True)):
        one = pseudo_count_cost(rescale(squared, distance, squared.mean()), 5, 0.1)
        other = pseudo_count_cost(rescale(100 * squared, distance, 100 * squared.mean()), 5, 0.1)
        assert np.allclose(one, other) == alike


def test_area_under_curve_by_counting_pairs():
    rng = np.random.default_rng(2)
    score, positive = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    pairs = [(p > n) + 0.5 * (p == n) for p in score[positive] for n in score[~positive]]
    assert area_under_curve(score, positive) == pytest.approx(np.mean(pairs))
    assert np.isnan(area_under_curve(score, np.ones(60, bool)))


def test_anticipation_by_looking_ahead_from_every_state():
    rng = np.random.default_rng(3)
    steps, members, within = 60, 4, 5
    costs = (rng.random((steps, members)) < 0.1).astype(float)
    ended = rng.random((steps, members)) < 0.06
    intrinsic = rng.random((steps, members))
    score, soon = [], []
    for m in range(members):
        for t in range(steps):
            if costs[t, m] > 0:
                continue
            met, known = False, True
            for ahead in range(1, within + 1):
                if ended[t + ahead - 1, m]:
                    break
                if t + ahead >= steps:
                    known = False
                    break
                if costs[t + ahead, m] > 0:
                    met = True
                    break
            if met or known:
                score.append(intrinsic[t, m])
                soon.append(met)
    expected = area_under_curve(np.array(score), np.array(soon))
    assert anticipation(intrinsic, costs, ended, within) == pytest.approx(expected)


def test_a_signal_that_rises_before_the_cost_anticipates_it():
    costs = np.zeros((200, 1))
    costs[50::60] = 1
    ended = np.zeros((200, 1), bool)
    distance = np.min([(c - np.arange(200)) % 60 for c in (50,)], axis=0)
    assert anticipation(-distance[:, None].astype(float), costs, ended) == 1.0
