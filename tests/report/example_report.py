"""Example runs for reports: random policies, metrics of every kind, a memory, and names that contain markup."""

import json

import numpy as np

from flashbulb.storage.checkpoint import Checkpoints, load_arrays
from flashbulb.storage.csv_log import CsvLog
from tests.training.small_run import made_run

ITERATIONS = 12
ATTACK = "</script><script>window.attacked=1</script>"
IMAGE = '<img src=x onerror="window.attacked=1">'


def example_run(runs_dir, name, algorithm="cpo", env="HazardField-v0", seed=0, memory=False, **settings):
    """A run of `made_run` with random metrics and, with `memory`, remembered states."""
    path = made_run(runs_dir, name, algorithm, env, ITERATIONS, ITERATIONS, seed, **settings)
    columns = metrics(seed, memory)
    (path / "metrics.csv").unlink()
    for n in range(ITERATIONS):
        row = {column: values[n] for column, values in columns.items()}
        CsvLog(path / "metrics.csv").write([{"iteration": n, "steps": 300 * (n + 1), **row}])
    if memory:
        checkpoint = Checkpoints(path / "checkpoints").path(ITERATIONS)
        arrays = load_arrays(checkpoint)
        states = np.random.default_rng(3).uniform(0, 1, (40, arrays["memory/states"].shape[1]))
        arrays |= {"memory/states": states.astype(np.float32), "memory/iterations": np.full(40, ITERATIONS)}
        Checkpoints(path / "checkpoints").save(ITERATIONS, arrays)
    return path


def metrics(seed, memory):
    rng = np.random.default_rng(seed)
    unsafe = rng.normal(-3, 1, ITERATIONS)
    unsafe[2] = 0.0  # the value of an iteration without an unsafe state
    bias = np.full(ITERATIONS, np.nan)
    bias[3::4] = rng.normal(size=3)
    return {
        "return": np.linspace(0, 20, ITERATIONS) + rng.normal(size=ITERATIONS),
        "cost": rng.uniform(5, 60, ITERATIONS),
        "violation_rate": rng.uniform(size=ITERATIONS),
        "mean_excess": rng.uniform(0, 9, ITERATIONS),
        "cost_rate": rng.uniform(0.01, 0.03, ITERATIONS),
        "beta": np.full(ITERATIONS, 5.0) * memory,
        "memory_size": rng.integers(5, 500, ITERATIONS) * memory,
        "critic_bias_sampled_unsafe": unsafe,
        "critic_bias_rollout": bias,
        "cpo_case": rng.integers(0, 4, ITERATIONS).astype(float),
    }


def example_study(path):
    """A task with two algorithms and two seeds, a velocity task, a user environment, a run without a checkpoint."""
    runs = path / "runs"
    for seed in (0, 1):
        example_run(runs, f"cpo{seed}", seed=seed)
        example_run(runs, f"mice{seed}", "mice-cpo", seed=seed, memory=True)
    example_run(runs, f"runner {IMAGE}", "cpo", "SafetyHalfCheetahVelocity-v1")
    example_run(runs, "user_env", "cpo", "tests.envs.gym_examples:make_six")
    torn = example_run(runs, "torn", "pid-lag")
    Checkpoints(torn / "checkpoints").path(ITERATIONS).unlink()
    labels = {"cpo0": "cpo", "cpo1": "cpo", "mice0": f"mice {ATTACK}", "mice1": f"mice {ATTACK}"}
    about = {"name": IMAGE, "scale": "smoke", "commit": "1f90df2", "command": "flashbulb study x", "labels": labels}
    (path / "study.json").write_text(json.dumps(about))
    return path
