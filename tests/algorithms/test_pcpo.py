"""PCPO's rule where it can be read off: the step is tested against a solver in `test_baselines.py`."""

import jax.numpy as jnp
import numpy as np
import pytest

from flashbulb.algorithms.pcpo import projection_rule
from flashbulb.algorithms.trust_region import FROM_INSIDE, FROM_OUTSIDE, StepModel
from flashbulb.config import TrustRegionConfig


@pytest.mark.parametrize(("c", "case"), [(-0.1, FROM_INSIDE), (0.0, FROM_INSIDE), (0.1, FROM_OUTSIDE)])
def test_reward_and_cost_at_right_angles(c, case):
    """H = I, g = (2, 0), b = (0, 4), so x_R = (sqrt(2 kl), 0), and only an excess is projected away: by c / 4. That is
    longer than sqrt(2 kl), to which it is shortened."""
    model = StepModel(*map(jnp.asarray, ([2.0, 0.0], [0.0, 4.0], 4.0, 0.0, 16.0, c)))
    full = projection_rule(model, TrustRegionConfig(kl=0.02))
    projected = np.array([0.2, -max(c, 0.0) / 4])
    np.testing.assert_allclose(full.step, projected * 0.2 / np.linalg.norm(projected), rtol=1e-6, atol=1e-7)
    assert int(full.case) == case
    assert float(full.nu) == pytest.approx(max(c, 0.0) / 16)
    assert float(full.lam) == pytest.approx(10.0)
