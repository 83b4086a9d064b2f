"""The margin against sequences by hand, and the frequency of violations that it is there to hold."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from flashbulb.algorithms.margin import ExcessIntegral, Margin, integral_step, margin_step
from flashbulb.config import IntegralConfig, MarginConfig

LIMIT = 25.0


def margins(costs, errors, violations, config, limit=LIMIT):
    """z and u after each cost, and the last state."""
    state, out = Margin.start(violations, config), []
    for cost, error in zip(costs, errors, strict=True):
        state, u, report = margin_step(state, np.float32(cost), np.float32(error), limit, violations, config)
        assert float(report["margin"]) == float(u)
        assert float(report["margin_z"]) == float(state.z)
        out.append((float(state.z), float(u)))
    return np.array(out), state


@pytest.mark.parametrize("violations", [0.01, 0.05, 0.1, 0.25, 0.49])
def test_z_starts_at_the_normal_quantile(violations):
    assert float(Margin.start(violations, MarginConfig()).z) == pytest.approx(norm.ppf(1 - violations), rel=1e-5)


@pytest.mark.parametrize("violations", [0.04, 0.1, 0.2])
def test_a_cautious_start_is_that_of_a_quarter_of_the_violations(violations):
    z = float(Margin.start(violations, MarginConfig(start="cautious")).z)
    assert norm.sf(z) == pytest.approx(violations / 4, rel=1e-4)


@pytest.mark.parametrize("violations", [0.5, 0.7, 1.0])
def test_no_margin_where_half_of_the_iterations_may_exceed_the_limit(violations):
    assert float(Margin.start(violations, MarginConfig()).z) == 0.0


def test_z_starts_no_higher_than_its_maximum():
    assert float(Margin.start(0.0, MarginConfig(maximum=3.0)).z) == 3.0
    assert float(Margin.start(0.0, MarginConfig(start="cautious", maximum=3.0)).z) == 3.0
    assert float(Margin.start(0.001, MarginConfig(maximum=2.0)).z) == 2.0
    assert float(Margin.start(0.1, MarginConfig(start="zero")).z) == 0.0


def test_margin_by_hand():
    """Rate 0.5, target 0.2: z falls by 0.1 within the limit and rises by 0.4 above it."""
    config = MarginConfig(start="zero", rate=0.5, maximum=1.0, share=0.5, smooth=0.75)
    #           below the aim | above: reached | above | above: 1.2 is over 1 | exactly at the limit: no violation
    costs = [20.0, 26.0, 30.0, 40.0, 25.0]
    errors = [2.0, 6.0, 2.0, 2.0, 2.0]
    z = [0.0, 0.4, 0.8, 1.0, 0.9]
    smooth = [2.0, 3.0, 2.75, 2.5625, 2.421875]  # 0.75 old + 0.25 new; the first has no past
    found, state = margins(costs, errors, 0.2, config)
    np.testing.assert_allclose(found[:, 0], z, atol=1e-6)
    np.testing.assert_allclose(found[:, 1], np.multiply(z, smooth), atol=1e-6)
    assert float(state.standard_error) == pytest.approx(smooth[-1])
    assert int(state.steps) == 5


def test_margin_of_observed_noise_by_hand():
    """Half the squared difference to the cost before, smoothed; differences count once the aim has been reached."""
    config = MarginConfig(start="quantile", rate=0.0, share=1.0, smooth=0.5, noise="observed")
    z = norm.ppf(0.9)
    #        not reached | reached: 60 -> 20 was a way to go, no noise | +6 | -6 | the standard error is the larger
    costs, errors = [60.0, 20.0, 26.0, 20.0, 20.0, 20.0], [2.0, 2.0, 2.0, 2.0, 2.0, 30.0]
    variances = [0.0, 0.0, 9.0, 13.5, 6.75, 3.375]  # 0.5 old + 0.5 * 36 / 2
    deviations = [2.0, 2.0, 3.0, 13.5**0.5, 6.75**0.5, 16.0]
    found, state = margins(costs, errors, 0.1, config)
    np.testing.assert_allclose(found[:, 1], np.multiply(z, deviations), rtol=1e-5)
    assert float(state.observed.variance) == pytest.approx(variances[-1])
    sampling, _ = margins(costs, errors, 0.1, dataclasses.replace(config, noise="sampling"))
    np.testing.assert_allclose(sampling[:, 1], np.multiply(z, [2.0] * 5 + [16.0]), rtol=1e-5)


def test_observed_noise_holds_the_frequency_in_a_short_run_where_the_standard_error_knows_too_little():
    """100 iterations, five times as noisy as the standard error says: z has no time to make up for that."""
    frequencies = {}
    for noise in ("sampling", "observed"):
        config = MarginConfig(rate=0.1, share=1.0, noise=noise)
        runs = [np.random.default_rng(seed).normal(0, 5.0, 100) for seed in range(40)]
        costs = np.array([simulate(run, np.ones(100), 0.1, config)[0] for run in runs])
        frequencies[noise] = (costs > LIMIT).mean()
    assert frequencies["sampling"] > 0.2
    assert 0.07 < frequencies["observed"] < 0.15


def test_a_cautious_start_keeps_a_short_run_below_the_frequency_asked_for():
    """Noise of 3 where the standard error says 2: from the quantile the frequency is approached from above."""
    frequencies = {}
    for start in ("quantile", "cautious"):
        config = MarginConfig(start=start, rate=0.1, share=1.0)
        runs = [np.random.default_rng(seed).normal(0, 3.0, 100) for seed in range(40)]
        costs = np.array([simulate(run, np.full(100, 2.0), 0.1, config)[0] for run in runs])
        frequencies[start] = (costs > LIMIT).mean()
    assert frequencies["quantile"] > 0.12
    assert 0.04 < frequencies["cautious"] < 0.1


def test_the_margin_is_at_most_its_share_of_the_limit():
    config = MarginConfig(share=0.3, smooth=0.0)
    found, _ = margins([0.0, 0.0], [100.0, 1.0], 0.1, config)
    assert found[0, 1] == pytest.approx(0.3 * LIMIT)
    assert found[1, 1] == pytest.approx(found[1, 0] * 1.0)  # and z itself was not clipped with it


def test_z_waits_until_a_cost_has_been_where_the_loop_aims():
    """Aim: 25 - 2 z = 21, with z = 2. A cost between aim and limit has not reached it; z moves neither up nor down."""
    config, violations = MarginConfig(rate=0.5, smooth=0.0), norm.cdf(-2.0)
    costs = [60.0, 30.0, 24.0, 21.5, 20.5, 30.0]
    found, _ = margins(costs, [2.0] * 6, violations, config)
    expected = [2.0] * 4 + [2.0 - 0.5 * violations, 2.0 + 0.5 * (1 - 2 * violations)]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


def test_the_aim_to_be_reached_has_its_bound_too():
    """u is at most 0.2 of the limit, so 20 is where the loop aims, whatever z says."""
    config = MarginConfig(share=0.2, smooth=0.0)
    assert float(margins([90.0, 20.5], [50.0] * 2, 0.1, config)[1].reached) == 0.0
    assert float(margins([90.0, 19.5], [50.0] * 2, 0.1, config)[1].reached) == 1.0


def test_z_waits_for_an_agent_that_starts_far_below_the_limit():
    """A robot that cannot walk yet says nothing about noise: z is not spent before a cost exceeds the aim, 25 - 4."""
    config, violations = MarginConfig(rate=0.5, smooth=0.0), norm.cdf(-2.0)
    found, _ = margins([0.0, 5.0, 20.5, 21.5, 10.0, 30.0], [2.0] * 6, violations, config)
    down = 0.5 * violations
    np.testing.assert_allclose(found[:, 0], [2.0] * 3 + [2.0 - down, 2.0 - 2 * down, 2.5 - 3 * down], rtol=1e-5)


@pytest.mark.parametrize("costs", [[60.0, 20.0, 60.0, 60.0], [0.0, 60.0, 60.0, 60.0]])
def test_once_reached_it_stays_so(costs):
    config = MarginConfig(rate=0.1, start="zero")
    found, state = margins(costs, [1.0] * 4, 0.1, config)
    assert float(state.reached) == 1.0
    np.testing.assert_allclose(found[2:, 0] - found[1, 0], [0.09, 0.18], atol=1e-6)


def simulate(noise, errors, violations, config, limit=LIMIT):
    """An actuator that does what it is told: an iteration costs limit - u + noise."""
    return np.asarray(_simulation(config)(noise, errors, violations, limit))


@functools.cache
def _simulation(config):
    """Compiled once per configuration and number of iterations. -> costs and z of each"""

    def simulation(noise, errors, violations, limit):
        def iteration(carry, sample):
            state, u = carry
            cost = limit - u + sample[0]
            state, u, _ = margin_step(state, cost, sample[1], limit, violations, config)
            return (state, u), (cost, state.z)

        first = Margin.start(violations, config)
        _, found = jax.lax.scan(iteration, (first, first.z * errors[0]), (noise, errors))
        return found

    compiled = jax.jit(simulation, static_argnums=(2, 3))
    return lambda noise, errors, *fixed: compiled(jnp.asarray(noise, jnp.float32), jnp.asarray(errors), *fixed)


N = 4000
TIME = np.linspace(0, 1, N)


def gaussian(rng):
    return rng.normal(0, 1.5, N)


def skewed(rng):
    return 1.5 * (rng.exponential(1, N) - 1)


def drifting(rng):
    """The spread grows threefold, and the mean wanders off."""
    return rng.normal(0, 1, N) * (0.8 + 1.6 * TIME) + np.sin(3 * TIME)


def correlated(rng):
    noise = np.zeros(N)
    for t in range(1, N):
        noise[t] = 0.7 * noise[t - 1] + rng.normal()
    return noise


@pytest.mark.parametrize("violations", [0.1, 0.15])
@pytest.mark.parametrize("told", [1.0, 0.6, 1.5])  # the standard error that is reported, over the spread of the noise
@pytest.mark.parametrize("draw", [gaussian, skewed, drifting, correlated])
def test_the_long_run_frequency_of_violations_is_the_one_asked_for(draw, told, violations):
    """Adaptive conformal inference: |frequency - target| <= maximum / (rate N), whatever the noise."""
    config = MarginConfig(maximum=6.0, share=1.0)
    noise = draw(np.random.default_rng(0))
    costs, z = simulate(noise, np.full(N, 1.5 * told), violations, config)
    assert z.min() > 0  # not saturated, which is all that the guarantee needs
    assert z.max() < config.maximum
    assert abs((costs > LIMIT).mean() - violations) <= config.maximum / (config.rate * N)
    assert 0.5 * violations < (costs[-1000:] > LIMIT).mean() < 1.5 * violations  # of every stretch, not of the sum only


def test_without_the_feedback_a_wrong_standard_error_shows_in_the_frequency():
    """The test above would be empty if the quantile it starts from were enough."""
    costs, _ = simulate(gaussian(np.random.default_rng(0)), np.full(N, 0.9), 0.1, MarginConfig(rate=0.0))
    config = MarginConfig()
    assert (costs > LIMIT).mean() > 0.1 + config.maximum / (config.rate * N)


def test_a_saturated_actuator_does_not_wind_z_up():
    config = MarginConfig(rate=0.1, maximum=2.0)
    found, _ = margins([10.0] + [60.0] * 500 + [10.0] * 3, [1.0] * 504, 0.1, config)
    assert found[:, 0].max() == pytest.approx(2.0)
    np.testing.assert_allclose(found[-4:, 0], [2.0, 1.99, 1.98, 1.97], atol=1e-5)


def test_z_does_not_go_below_zero_and_leaves_it_with_the_first_violation():
    config = MarginConfig(rate=0.1)
    found, _ = margins([60.0] + [0.0] * 500 + [60.0], [1.0] * 502, 0.2, config)
    assert found[-2, 0] == 0.0
    assert found[-1, 0] == pytest.approx(0.08)


def integrals(excesses, saturated, config, limit=LIMIT):
    state, out = ExcessIntegral.start(), []
    for excess, after_recovery in zip(excesses, saturated, strict=True):
        state = state._replace(saturated=jnp.float32(after_recovery))
        state = integral_step(state, jnp.float32(excess), limit, config)
        out.append(float(state.value))
    return out


def test_the_integral_by_hand():
    config = IntegralConfig(gain=0.1, share=1.0)
    assert integrals([10, 20, -5, -60], [0] * 4, config) == pytest.approx([1.0, 3.0, 2.5, -3.5])


def test_the_integral_is_bounded_on_both_sides_and_leaves_its_bounds_at_once():
    config = IntegralConfig(gain=0.5, share=0.4)
    up = integrals([15] * 5 + [-2], [0] * 6, config)
    assert up == pytest.approx([7.5, 10, 10, 10, 10, 9])
    down = integrals([-15] * 5 + [2], [0] * 6, config)
    assert down == pytest.approx([-7.5, -10, -10, -10, -10, -9])


def test_the_integral_waits_while_steps_for_cost_alone_can_do_no_more():
    """After a recovery step it does not grow, but it may shrink."""
    config = IntegralConfig(gain=0.1)
    found = integrals([10, 10, 10, -10, 10], [0, 1, 1, 1, 0], config)
    assert found == pytest.approx([1.0, 1.0, 1.0, 0.0, 1.0])
