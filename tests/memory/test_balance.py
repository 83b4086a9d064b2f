"""The balancing factor: direction, discount, and safety of its division."""

import numpy as np
import pytest

from flashbulb.config import BalanceConfig
from flashbulb.memory import Balance
from flashbulb.memory.balance import correction

CONFIG = BalanceConfig(initial=2.0, rate=0.1, discount=0.9)


def test_beta_rises_on_underestimation_and_falls_on_overestimation():
    intrinsic = np.full(10, 0.5)
    start = Balance.start(CONFIG)
    still = BalanceConfig(initial=2.0, rate=0.1, discount=1.0)
    assert start.correct(np.full(10, -1.0), intrinsic, still).beta(still) > 2.0
    assert start.correct(np.full(10, +1.0), intrinsic, still).beta(still) < 2.0
    assert start.correct(np.zeros(10), intrinsic, still).beta(still) == 2.0


def test_with_equal_intrinsic_costs_it_is_the_proposition():
    bias = np.random.default_rng(0).standard_normal(50)
    b = float(Balance.start(CONFIG).correct(bias, np.full(50, 0.25), CONFIG).b)
    assert b == pytest.approx(2.0 - 0.1 * np.mean(bias / 0.25))


def test_correction_is_the_least_squares_fit_of_bias_by_intrinsic_cost():
    rng = np.random.default_rng(1)
    bias, intrinsic = rng.standard_normal(80), rng.random(80)
    fitted = np.linalg.lstsq(intrinsic[:, None], bias, rcond=None)[0].item()
    assert correction(bias, intrinsic) == pytest.approx(fitted)


def test_the_discount_is_applied_once_per_update_and_does_not_compound():
    balance = Balance.start(CONFIG)
    for n in range(1, 40):
        balance = balance.correct(np.zeros(3), np.ones(3), CONFIG)
        assert balance.beta(CONFIG) == pytest.approx(0.9**n * 2.0)


def test_beta_is_never_negative_and_comes_back_at_once():
    balance = Balance.start(CONFIG).correct(np.full(5, 100.0), np.ones(5), CONFIG)
    assert balance.beta(CONFIG) == 0.0
    assert float(balance.correct(np.full(5, -2.0), np.ones(5), CONFIG).b) == pytest.approx(0.2)


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-12])
def test_a_tiny_intrinsic_cost_does_not_blow_beta_up(tiny):
    intrinsic = np.array([0.5, tiny])
    b = float(Balance.start(CONFIG).correct(np.array([-1.0, -1.0]), intrinsic, CONFIG).b)
    assert b == pytest.approx(2.0 + 0.1 * 1.0 / 0.5, rel=1e-6)


def test_no_intrinsic_cost_at_all_leaves_beta_alone():
    assert float(Balance.start(CONFIG).correct(np.ones(4), np.zeros(4), CONFIG).b) == 2.0
