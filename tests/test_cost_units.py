"""The extrinsic cost as the critic learns it, with statistics worked out over all costs so far."""

import jax
import numpy as np
import pytest

from flashbulb.algorithms.advantages import estimate_advantages
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.cost_units import cost_units, learned_costs, start_normaliser
from flashbulb.errors import UsageError
from tests.algorithms.test_estimates import CRITICS, sample


@pytest.mark.parametrize("reading", ["scale", "standardise"])
def test_by_the_deviation_of_all_costs_so_far(reading):
    rng, normaliser, seen = np.random.default_rng(0), start_normaliser(reading), []
    for steps in (4, 9, 30):
        costs = (2.0 * (rng.random((steps, 3)) < 0.3)).astype(np.float32)
        normaliser, found = learned_costs(normaliser, costs, reading)
        seen.extend(costs.ravel().tolist())
        mean = np.mean(seen) if reading == "standardise" else 0.0
        np.testing.assert_allclose(found, (costs - mean) / np.std(seen), rtol=1e-5, atol=1e-6)


def test_only_without_the_mean_a_safe_step_costs_nothing():
    costs = np.array([[0.0, 4.0]], np.float32)
    found = {
        reading: learned_costs(start_normaliser(reading), costs, reading)[1] for reading in ("scale", "standardise")
    }
    np.testing.assert_allclose(found["scale"], [[0.0, 2.0]])
    np.testing.assert_allclose(found["standardise"], [[-1.0, 1.0]])


def test_rare_costs_do_not_become_huge_and_none_stays_none():
    rare = np.zeros((10, 5_000), np.float32)
    rare[0, 0] = 1.0  # a deviation of 0.0045
    assert learned_costs(start_normaliser("scale"), rare, "scale")[1].max() == pytest.approx(100.0)
    assert learned_costs((), rare, "none") == ((), None)
    assert cost_units(start_normaliser("scale"), "scale")(3.0) == 3.0, "nothing seen yet"


def test_the_critic_and_the_factor_learn_from_them_and_nothing_else_does():
    """As if the task had had these costs; the reward's part stays as it is."""
    batch, config = sample(4)._replace(beta=0.0), configure("mice-cpo", "E")
    learned = (3.0 * batch.costs - 1.0).astype(np.float32)
    estimate = jax.jit(lambda b: estimate_advantages(CRITICS, b, b.rewards, config))
    found, direct = estimate(batch._replace(learned_costs=learned)), estimate(batch._replace(costs=learned))
    for name in ("a_r", "a_c", "sampled_bias", "balance_bias"):
        np.testing.assert_array_equal(getattr(found, name), getattr(direct, name), err_msg=name)
    assert np.abs(np.asarray(found.a_c - estimate(batch).a_c)).max() > 0.1


def test_what_does_not_fit_together():
    with pytest.raises(UsageError, match="cost_normalise: 'scale' is not allowed"):
        configure("mice-cpo", "E", cost_normalise="scale", memory={"criterion": "return"})
    assert "cost_normalise" in get_algorithm("ppo").unused_settings
