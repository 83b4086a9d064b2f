"""Snapshots of the memory beside a run, and the map of intrinsic cost that is drawn from them."""

import numpy as np
import pytest
from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.analysis import intrinsic_map
from flashbulb.analysis.memory_snapshots import (
    MemorySnapshot,
    load_memory_snapshots,
    most_dangerous,
    snapshot_iterations,
)
from flashbulb.cli.main import run as command
from flashbulb.config import MemoryConfig
from flashbulb.errors import UsageError
from flashbulb.memory import FlashbulbMemory
from flashbulb.normaliser import Normaliser
from flashbulb.plots.memory_map import spread_snapshots
from flashbulb.training.loop import train

SMALL = {
    "steps": 2_400,
    "num_envs": 4,
    "steps_per_iteration": 800,
    "policy": {"hidden": (4,)},
    "critic": {"hidden": (4,), "passes": 1},
    "memory": {"snapshots": 2},
    "seed": 3,
}


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    for name, value in (("SIDE", 11), ("HEADINGS", 4), ("BATCH", 200)):
        monkeypatch.setattr(intrinsic_map, name, value)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    config = configure("mice-cpo", "HazardField-v0", runs_dir=tmp_path_factory.mktemp("runs"), **SMALL)
    return train(config, Console(quiet=True)).directory, config


def test_snapshots_are_evenly_spaced_and_the_last_is_that_of_the_run(small_run):
    directory, config = small_run
    assert snapshot_iterations(config) == {2, 3}
    snapshots = load_memory_snapshots(directory, config)
    assert [snapshot.done for snapshot in snapshots] == [2, 3]
    assert all(len(array) == 1 for array in snapshots[0].env.values())
    newest = directory / "checkpoints" / "000003.safetensors"
    from flashbulb.storage.checkpoint import load_arrays

    np.testing.assert_array_equal(snapshots[1].memory.states, load_arrays(newest)["memory/states"])


def test_times_of_several_lengths_and_of_algorithms_without_memory():
    def of(algorithm, iterations, snapshots):
        settings = {"steps": 20_000 * iterations, "memory": {"snapshots": snapshots}}
        return sorted(snapshot_iterations(configure(algorithm, "HazardField-v0", **settings)))

    assert of("mice-cpo", 500, 4) == [125, 250, 375, 500]
    assert of("mice-cpo", 2, 4) == [1, 2]
    assert of("mice-cpo", 10, 0) == []
    assert of("cpo", 500, 4) == []


def test_the_most_dangerous_environment_by_its_first_episode_alone():
    rng = np.random.default_rng(0)
    costs, ended = (rng.random((30, 6)) < 0.2).astype(float), rng.random((30, 6)) < 0.1
    sums = [sum(costs[: [*np.flatnonzero(ended[:, m]), 29][0] + 1, m]) for m in range(6)]
    assert sums[most_dangerous(costs, ended)] == max(sums)


@pytest.mark.parametrize("env_id", ["HazardField-v0", "SafetyPointGoal1-v0"])
def test_the_intrinsic_cost_is_greatest_where_the_view_was_remembered(env_id):
    env = intrinsic_map.map_env(env_id, 5)
    here = intrinsic_map.observe_layout(env)
    env.close()
    place, heading = 27, 2
    state = here.views[place, heading].copy()
    state[: here.motion] = 0.7  # it was moving
    config = MemoryConfig(neighbours=1)
    memory = FlashbulbMemory.empty(len(state), config, np.random.default_rng(0)).add(state[None], 0, config)
    normaliser = Normaliser.empty(len(state)).absorb(here.views.reshape(-1, len(state))).frozen()
    snapshot = MemorySnapshot(1, memory, normaliser, {})
    heat = intrinsic_map.intrinsic_cost_map(here, snapshot, config)
    assert heat.shape == (11, 11)
    assert heat.argmax() == place
    assert heat.max() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_array_equal(intrinsic_map.remembered_positions(here, snapshot), here.positions[[place]])
    empty = snapshot._replace(memory=FlashbulbMemory.empty(len(state), config, np.random.default_rng(0)))
    assert intrinsic_map.intrinsic_cost_map(here, empty, config).max() == 0
    assert intrinsic_map.remembered_positions(here, empty).shape == (0, 2)


def test_views_are_those_from_the_places_of_the_grid():
    """Against a single agent put there by hand."""
    env = intrinsic_map.map_env("HazardField-v0", 5)
    here = intrinsic_map.observe_layout(env)
    place, heading = 40, 3
    layout = env.layout()
    layout["position"][7], layout["heading"][7] = here.positions[place], heading * 2 * np.pi / 4
    env.set_layout(layout)
    np.testing.assert_allclose(env.observe()[7], here.views[place, heading], atol=1e-6)
    assert here.positions[0] == pytest.approx([-intrinsic_map.HALF_VIEW] * 2)


def test_panels_are_spread_over_what_was_kept():
    snapshots = [MemorySnapshot(done, None, None, {}) for done in range(1, 11)]
    assert [snapshot.done for snapshot in spread_snapshots(snapshots)] == [1, 4, 7, 10]
    assert spread_snapshots(snapshots[:3]) == snapshots[:3]


@pytest.mark.parametrize("options", [[], ["--seed", "4"]])
def test_the_command_draws(small_run, options, tmp_path, capsys):
    path = tmp_path / "map.png"
    assert command(["memory", str(small_run[0]), "-o", str(path), *options]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "after 2, 3 iterations" in capsys.readouterr().out


def test_what_has_no_memory_or_no_map_is_refused(small_run, tmp_path):
    directory, config = small_run
    with pytest.raises(UsageError, match="has no memory"):
        load_memory_snapshots(directory, configure("cpo", "HazardField-v0"))
    with pytest.raises(UsageError, match="has no map"):
        intrinsic_map.map_env("SafetyHalfCheetahVelocity-v1", 0)
    with pytest.raises(UsageError, match="has saved no memory yet"):
        load_memory_snapshots(tmp_path, config)
    with pytest.raises(UsageError, match=r"output: .*\.png"):
        command(["memory", str(directory), "-o", "map.txt"])
