"""GAE against a double loop over trajectories."""

import numpy as np
import pytest

from flashbulb.algorithms.advantages import discounted_return, gae


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    shape = (37, 5)
    terminated = rng.random(shape) < 0.08
    truncated = ~terminated & (rng.random(shape) < 0.08)
    return {
        "signal": rng.standard_normal(shape),
        "values": rng.standard_normal(shape),
        "next_values": rng.standard_normal(shape),
        "terminated": terminated.astype(float),
        "ended": (terminated | truncated).astype(float),
    }


def double_loop(signal, values, next_values, terminated, ended, gamma, lam):
    """The definition: sum over l of (gamma lam)^l delta_{t+l}, up to the end of the episode or of the batch."""
    steps, members = signal.shape
    out = np.zeros((steps, members))
    for m in range(members):
        for t in range(steps):
            weight = 1.0
            for u in range(t, steps):
                following = 0.0 if terminated[u, m] else next_values[u, m]
                out[t, m] += weight * (signal[u, m] + gamma * following - values[u, m])
                weight *= gamma * lam
                if ended[u, m]:
                    break
    return out


@pytest.mark.parametrize(("gamma", "lam"), [(0.99, 0.95), (0.9, 0.0), (0.97, 1.0)])
def test_gae_is_the_double_loop(batch, gamma, lam):
    np.testing.assert_allclose(
        gae(**batch, gamma=gamma, lam=lam), double_loop(**batch, gamma=gamma, lam=lam), atol=1e-5
    )


def test_discounted_return_sums_the_signal_and_bootstraps_where_cut(batch):
    # what followed a step within its episode is the next sample
    goes_on = batch["ended"][:-1] == 0
    batch["next_values"][:-1][goes_on] = batch["values"][1:][goes_on]
    found = discounted_return(**batch, gamma=0.9)
    steps, members = batch["signal"].shape
    for m in range(members):
        for t in range(steps):
            total, weight = 0.0, 1.0
            for u in range(t, steps):
                total += weight * batch["signal"][u, m]
                weight *= 0.9
                if batch["ended"][u, m] or u == steps - 1:
                    total += 0.0 if batch["terminated"][u, m] else weight * batch["next_values"][u, m]
                    break
            assert float(found[t, m]) == pytest.approx(total, abs=1e-4)


def test_an_extra_cost_never_lowers_the_target(batch):
    """Q^EI >= Q for the same data and start: adding beta c^I >= 0 raises every advantage, and so every target."""
    more = {**batch, "signal": batch["signal"] + np.random.default_rng(1).random(batch["signal"].shape)}
    assert (np.asarray(gae(**more, gamma=0.99, lam=0.95)) >= np.asarray(gae(**batch, gamma=0.99, lam=0.95))).all()
