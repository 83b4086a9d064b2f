"""lambda's controllers against sequences computed by hand and against a plain-Python controller."""

from collections import deque

import numpy as np
import pytest

from flashbulb.algorithms.multipliers import Ascent, Pid, ascent_step, pid_step
from flashbulb.config import AscentConfig, PidConfig

LIMIT = 25.0


def lambdas(costs, config):
    state, out = Pid.start(config), []
    for cost in costs:
        state, lam, report = pid_step(state, np.float32(cost), LIMIT, config)
        assert float(report["lambda"]) == float(lam)
        out.append(float(lam))
    return np.array(out), report


def test_pid_by_hand():
    config = PidConfig(proportional=0.1, integral=0.01, derivative=0.5, initial=0.0)
    # Delta: 10, 15, -5, -25. I: 10, 25, 20, 0 (not -5). d: 0, 5, 0 (not -20), 0.
    by_hand = [
        0.1 * 10 + 0.01 * 10,
        0.1 * 15 + 0.01 * 25 + 0.5 * 5,
        0.0,  # -0.5 + 0.2
        0.0,
    ]
    ours, last = lambdas([35, 40, 20, 0], config)
    np.testing.assert_allclose(ours, by_hand, rtol=1e-6)
    assert float(last["pid_i"]) == 0.0
    assert float(last["pid_p"]) == pytest.approx(-2.5)


def test_pid_with_averages_and_delay():
    config = PidConfig(0.2, 0.01, 0.3, smooth_proportional=0.8, smooth_derivative=0.5, delay=3, initial=0.5)
    costs = np.random.default_rng(0).uniform(0, 60, 30)
    p = d = None
    integral, past, expected = 50.0, deque(maxlen=3), []
    for cost in costs:
        delta = cost - LIMIT
        p = delta if p is None else 0.8 * p + 0.2 * delta
        d = cost if d is None else 0.5 * d + 0.5 * cost
        if not past:
            past.extend([d] * 3)
        integral = max(integral + delta, 0.0)
        expected.append(max(0.2 * p + 0.01 * integral + 0.3 * max(d - past[0], 0.0), 0.0))
        past.append(d)
    np.testing.assert_allclose(lambdas(costs, config)[0], expected, rtol=1e-4, atol=1e-5)


def test_no_derivative_kick_at_the_start():
    config = PidConfig(proportional=0.0, integral=0.0, derivative=1.0)
    for delay in (1, 5):
        ours, _ = lambdas([60.0] * 7, PidConfig(0.0, 0.0, 1.0, delay=delay))
        np.testing.assert_array_equal(ours, 0.0)
    assert lambdas([60.0, 61.0], config)[0][1] == pytest.approx(1.0)


def test_no_windup():
    """After a thousand iterations far above the limit, lambda leaves its cap with the first one below."""
    config = PidConfig(maximum=2.0)
    ours, _ = lambdas([125.0] * 1000 + [24.0], config)
    assert ours[-2] == pytest.approx(2.0)
    assert ours[-1] < 2.0
    assert float(Pid.start(config).integral) * config.integral == pytest.approx(config.initial)


def test_pid_starts_from_its_initial_value():
    ours, _ = lambdas([LIMIT], PidConfig(initial=0.25))
    assert ours[0] == pytest.approx(0.25)
    assert np.isfinite(lambdas([LIMIT], PidConfig(integral=0.0))[0]).all()


def test_ascent_by_hand():
    config = AscentConfig(learning_rate=0.1, initial=0.5, maximum=2.0)
    state, out = Ascent.start(config), []
    for cost in (30, 20, 15, 100, 24):
        state, lam, _ = ascent_step(state, np.float32(cost), LIMIT, config)
        out.append(float(lam))
    np.testing.assert_allclose(out, [1.0, 0.5, 0.0, 2.0, 1.9], rtol=1e-6)


def ascended(costs, config):
    state, out = Ascent.start(config), []
    for cost in costs:
        state, lam, report = ascent_step(state, np.float32(cost), LIMIT, config)
        assert float(report["lambda"]) == float(lam)
        out.append(float(lam))
    return np.array(out)


def test_adams_rule_against_a_hand_written_adam():
    """The peers' multiplier: Adam's ascent on the excess, b1 0.9, b2 0.999, kept between 0 and its cap."""
    config = AscentConfig(learning_rate=0.035, rule="adam", initial=0.02, maximum=0.3)
    costs = LIMIT + np.random.default_rng(0).normal(3, 12, 20)
    lam, m, v, expected = 0.02, 0.0, 0.0, []
    for t, cost in enumerate(costs, start=1):
        excess = cost - LIMIT
        m, v = 0.9 * m + 0.1 * excess, 0.999 * v + 0.001 * excess**2
        lam += 0.035 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        lam = min(max(lam, 0.0), 0.3)
        expected.append(lam)
    assert 0.0 < min(expected) < max(expected)
    np.testing.assert_allclose(ascended(costs, config), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("excess", [0.1, 3.0, 300.0])
def test_adams_rule_moves_by_eta_whatever_the_excess(excess):
    config = AscentConfig(learning_rate=0.035, rule="adam", initial=0.0)
    found = ascended([LIMIT + excess] * 10, config)
    np.testing.assert_allclose(np.diff(found, prepend=0.0), 0.035, rtol=1e-3)
    assert ascended([LIMIT + excess] * 3 + [LIMIT - excess] * 30, config)[-1] == 0.0


def test_the_gradients_rule_moves_by_eta_times_the_excess():
    """By default, and with no moments to keep."""
    assert AscentConfig().rule == "gradient"
    config = AscentConfig(learning_rate=0.035, initial=0.0)
    assert Ascent.start(config).adam == ()
    for excess in (0.1, 3.0, 300.0):
        found = ascended([LIMIT + excess] * 5, config)
        np.testing.assert_allclose(found, np.minimum(0.035 * excess * np.arange(1, 6), 100.0), rtol=1e-4)
