"""Runs under other readings of the paper: what they keep between iterations survives a resume, bit for bit."""

import numpy as np
import pytest
from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.storage.checkpoint import load_arrays
from flashbulb.storage.csv_log import read_csv
from flashbulb.training.loop import resume, train

TINY = {
    "steps": 1_200,
    "num_envs": 2,
    "steps_per_iteration": 300,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "checkpoint_every": 2,
    "seed": 4,
}
READINGS = {
    "authors": {
        "memory": {"kernel": "linear", "normalise": "deviation", "recall": "causal", "queue": 4, "neighbours": 2},
        "balance": {"factor": "state", "rate": 0.001, "unit": "start"},
        "cost_normalise": "standardise",
    },
    "previous": {"memory": {"normalise": "max", "recall": "previous", "window": 2}, "balance": {"unit": "episode"}},
}


@pytest.mark.parametrize("reading", [pytest.param("authors", marks=pytest.mark.slow), "previous"])
def test_a_resumed_run_ends_as_if_it_had_not_stopped(reading, tmp_path):
    config = configure("mice-cpo", "HazardField-v0", runs_dir=tmp_path, name="run", **TINY, **READINGS[reading])
    run = train(config, Console(quiet=True)).directory
    last = run / "checkpoints" / "000004.safetensors"
    before, arrays = (run / "metrics.csv").read_bytes(), load_arrays(last)
    last.unlink()
    resume(run, Console(quiet=True))
    assert (run / "metrics.csv").read_bytes() == before
    for name, array in load_arrays(last).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    metrics = read_csv(run / "metrics.csv")
    assert metrics["intrinsic_cost"].max() > 0
    assert np.isfinite(metrics["constraint"]).all()
