"""A longer run, and a run that starts from the networks of another."""

import json

import numpy as np
import pytest
from rich.console import Console

import flashbulb
from flashbulb.algorithms.registry import configure
from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import load_arrays
from flashbulb.training.callbacks import Callback
from flashbulb.training.loop import train
from tests.training.small_run import made_run

SMALL = {
    "num_envs": 3,
    "steps_per_iteration": 300,
    "checkpoint_every": 1,
    "threads": 1,
    "policy": {"hidden": (16, 8)},
    "critic": {"passes": 1},
}
QUIET = Console(quiet=True)


def test_a_finished_run_becomes_longer_and_resumes_exactly_from_then_on(tmp_path, capsys):
    config = configure("ppo-lag", "HazardField-v0", runs_dir=tmp_path, name="r", steps=600, **SMALL)
    before = train(config, QUIET).metrics
    there = tmp_path / "r"
    assert run(["resume", str(there), "--steps", "1.2e3"]) == 0
    saved = json.loads((there / "config.json").read_text())
    assert saved["config"]["steps"] == 1200
    assert saved["extended"] == [{"iteration": 2, "from_steps": 600, "to_steps": 1200}]
    older = there / "checkpoints" / "000002.safetensors"
    assert flashbulb.load_policy(older).steps == 600, "it still belongs to the run"
    metrics = (there / "metrics.csv").read_bytes()
    longer = flashbulb.resume(there, verbose=False).metrics
    assert len(longer["cost"]) == 4
    for name in before:
        np.testing.assert_array_equal(longer[name][:2], before[name], err_msg=name)
    (there / "checkpoints" / "000004.safetensors").unlink()
    flashbulb.resume(there, verbose=False)
    assert (there / "metrics.csv").read_bytes() == metrics
    with pytest.raises(UsageError, match="steps: 900 is not allowed; it must be at least 1200"):
        flashbulb.resume(there, steps=900)


def test_a_run_starts_from_the_networks_of_another(tmp_path):
    source = made_run(tmp_path, "source", "cpo", seed=3)
    theirs = load_arrays(source / "checkpoints" / "000004.safetensors")
    config = configure(
        "mice-pid", "HazardField-v0", runs_dir=tmp_path, name="new", steps=300, init_from=source, cost_limit=5, **SMALL
    )
    seen = {}

    class Look(Callback):
        def on_start(self, run):
            policy = run.policy()
            seen["log_std"], seen["weight"] = policy.params.log_std, policy.critics.networks[0].weight
            seen["mean"] = policy.normalise(np.zeros((1, policy.observation_space.shape[0]), np.float32))

    train(config, QUIET, callbacks=[Look()])
    np.testing.assert_array_equal(seen["log_std"], theirs["policy/log_std"])
    np.testing.assert_array_equal(seen["weight"], theirs["critics/networks/0/weight"])
    loaded = flashbulb.load_policy(source)
    np.testing.assert_array_equal(seen["mean"], loaded.normalise(np.zeros_like(loaded.observation_space.low)[None]))
    assert json.loads((tmp_path / "new" / "config.json").read_text())["config"]["init_from"] == str(source)


@pytest.mark.parametrize(
    ("algorithm", "settings", "says"),
    [
        ("cpo", {"policy": {"hidden": (8, 8)}}, r"policy/mean/\S+ must have shape \(\d+, 8\), and it has shape"),
        ("pid-lag-twin", {}, r"critics/networks/\S+ must have shape \(3,"),
        ("saute", {}, "init_from: .* does not fit"),
    ],
)
def test_other_sizes_are_refused(algorithm, settings, says, tmp_path):
    source = made_run(tmp_path, "source")
    config = configure(
        algorithm, "HazardField-v0", runs_dir=tmp_path, name="n", steps=300, init_from=source, **(SMALL | settings)
    )
    with pytest.raises(UsageError, match=says):
        train(config, QUIET)
    assert not (tmp_path / "n").exists()


def test_a_run_that_is_not_there_is_refused(tmp_path):
    config = configure("cpo", "HazardField-v0", runs_dir=tmp_path, name="n", init_from=tmp_path / "none", **SMALL)
    with pytest.raises(UsageError, match="no checkpoint that can be read"):
        train(config, QUIET)
