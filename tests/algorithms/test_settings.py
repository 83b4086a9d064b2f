"""The settings that a name stands for: those of the published runs, which another value would not reproduce."""

import pytest

from flashbulb.algorithms.registry import configure

CLOSED_LOOP = {
    "num_envs": 100, "stagger": True, "cost_estimate": "steps", "warm_up": 50, "near_lidar": True,
    "cost_gamma": 0.99, "cost_lam": 0.95, "policy.share_noise": True,
    "policy.least_std": 0.2, "cost_after_end": "mean", "cost_advantage": "standardised",
    "trust_region.kl": 0.02, "trust_region.decay": 0.5, "pid.proportional": 0.3, "pid.integral": 0.03,
    "pid.maximum": 10.0, "violations": 0.1, "margin.rate": 0.1, "margin.maximum": 4.0, "margin.noise": "observed",
    "margin.start": "cautious",
}  # fmt: skip
SALIENT = {"memory.view": "salient", "memory.xi": 0.1, "balance.initial": 0.6, "balance.rate": 0.0006}
AUTHORS = {
    "memory.distance": "own-mean", "memory.kernel": "linear", "memory.xi": 1e-4, "memory.normalise": "none",
    "memory.recall": "causal", "balance.factor": "state", "balance.rate": 1e-3, "balance.unit": "start",
    "cost_normalise": "standardise",
}  # fmt: skip
SETTINGS = {
    "trpo-pid": CLOSED_LOOP,
    "mice-trpo-pid": CLOSED_LOOP,
    "mice-salient": CLOSED_LOOP | {"memory.view": "salient", "balance.margin": 0.0},
    "focops": {"proximal.kl": 0.02, "ascent.maximum": 2.0},
    "mice-cpo-salient": SALIENT,
    "mice-cpo-authors": AUTHORS,
    "mice-cpo-no-projection": {"memory.embedding": 0},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_name_stands_for_its_settings(name):
    config = configure(name, "E")
    for path, expected in SETTINGS[name].items():
        found = config
        for part in path.split("."):
            found = getattr(found, part)
        assert found == expected, path
