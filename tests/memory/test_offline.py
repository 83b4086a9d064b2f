"""Data sets: what is read from them, what is refused, and importance resampling against closed forms."""

import importlib.util
import sys

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from flashbulb.batch import Batch
from flashbulb.config import BalanceConfig, MemoryConfig
from flashbulb.errors import UsageError
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.memory.cost_streams import MemoryCost
from flashbulb.memory.flashbulb_memory import OFFLINE
from flashbulb.memory.offline import load_transitions
from flashbulb.memory.resampling import (
    OfflinePool,
    behaviour_log_likelihood,
    effective_sample_size,
    importance_weights,
    systematic_resample,
)
from flashbulb.normaliser import Normaliser

ROWS, SIZE = 200, 3


def data_set(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "observations": rng.standard_normal((ROWS, SIZE)).astype(np.float32),
        "actions": rng.uniform(-1, 1, (ROWS, 2)),
        "costs": (rng.random(ROWS) < 0.2).astype(float),
    }


def write_npz(path, arrays):
    np.savez(path, **arrays)


def write_hdf5(path, arrays):
    h5py = pytest.importorskip("h5py", reason="an optional extra: flashbulb[offline]")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


@pytest.mark.parametrize(("suffix", "write"), [(".npz", write_npz), (".hdf5", write_hdf5)])
def test_files_give_back_what_was_written(suffix, write, tmp_path):
    arrays = data_set() | {"rewards": np.zeros(ROWS)}
    write(tmp_path / f"data{suffix}", arrays)
    read = load_transitions(str(tmp_path / f"data{suffix}"), SIZE, (2,))
    for name in ("observations", "actions", "costs"):
        np.testing.assert_array_equal(getattr(read, name), arrays[name])


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari wants an author
def test_minari_pairs_each_state_with_the_cost_of_its_step(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari", reason="an optional extra: flashbulb[offline]")
    pytest.importorskip("h5py", reason="an optional extra: flashbulb[offline]")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    steps = 5
    episodes = [
        EpisodeBuffer(
            id=k,
            observations=(100 * k + np.arange(SIZE * (steps + 1), dtype=np.float32)).reshape(-1, SIZE),
            actions=np.zeros((steps, 2), np.float32),
            rewards=[0.0] * steps,
            terminations=[False] * steps,
            truncations=[False] * (steps - 1) + [True],
            infos={"cost": np.array([9.0, 0, 0, 1, 0, 0])},  # the first is the reset's
        )
        for k in range(2)
    ]
    box = spaces.Box(-np.inf, np.inf, (SIZE,), np.float32), spaces.Box(-1, 1, (2,), np.float32)
    minari.create_dataset_from_buffers(
        "flashbulb/test-v0", episodes, observation_space=box[0], action_space=box[1], data_format="hdf5"
    )
    read = load_transitions("flashbulb/test-v0", SIZE, (2,))
    assert read.costs.tolist() == [0, 0, 1, 0, 0] * 2
    np.testing.assert_array_equal(read.observations[read.costs > 0][:, 0], [6, 106])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"costs": np.zeros(ROWS)}, "nothing to remember"),
        ({"observations": np.zeros((ROWS, 4))}, r"observations have shape \(200, 4\) and must have \(200, 3\)"),
        ({"actions": np.zeros((ROWS - 1, 2))}, "actions have shape"),
        ({"costs": np.full(ROWS, np.nan)}, "costs must be finite"),
        ({"observations": np.zeros((ROWS, 3), complex)}, "observations must be finite numbers"),
        ({"actions": np.full((ROWS, 2), "left")}, "actions must be finite numbers"),
        ({"actions": None}, "no array called actions"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(change, says, tmp_path):
    arrays = {name: array for name, array in (data_set() | change).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UsageError, match=says) as refusal:
        load_transitions(str(tmp_path / "bad.npz"), SIZE, (2,))
    assert str(refusal.value).startswith("memory.offline: ")
    assert str(refusal.value).count("memory.offline") == 1, "one sentence is not quoted in another"
    assert "\n" not in str(refusal.value)


def test_files_that_are_no_data_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        load_transitions(str(tmp_path / "none.npz"), SIZE, (2,))
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="cannot be read"):
        load_transitions(str(tmp_path / "torn.npz"), SIZE, (2,))


@pytest.mark.parametrize(("source", "package"), [("data.hdf5", "h5py"), ("D4RL/door-v0", "minari")])
def test_a_missing_package_is_named_with_its_extra(source, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(UsageError, match=r"pip install flashbulb\[offline\]"):
        load_transitions(source, SIZE, (2,))


@pytest.mark.skipif(importlib.util.find_spec("minari") is None, reason="an optional extra: flashbulb[offline]")
def test_an_unknown_minari_data_set_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(UsageError, match="minari download nobody/nothing-v0"):
        load_transitions("nobody/nothing-v0", SIZE, (2,))


def test_a_linear_gaussian_behaviour_is_found():
    """Against the density it was drawn from."""
    rng = np.random.default_rng(1)
    x = 3 + 2 * rng.standard_normal((20_000, 2))
    slope, spread = np.array([[0.5, -1.0], [0.2, 0.3]]), np.array([0.3, 0.7])
    mean = x @ slope + [0.1, -0.2]
    actions = mean + spread * rng.standard_normal(mean.shape)
    truth = [multivariate_normal(m, np.diag(spread**2)).logpdf(a) for m, a in zip(mean[:300], actions, strict=False)]
    np.testing.assert_allclose(behaviour_log_likelihood(x, actions)[:300], truth, atol=0.05)


def test_a_discrete_behaviour_is_its_frequencies():
    actions = np.array([2] * 6 + [5] * 2)
    expected = np.log([7 / 10] * 6 + [3 / 10] * 2)
    np.testing.assert_allclose(behaviour_log_likelihood(np.zeros((8, 1)), actions), expected)


def test_weights_are_the_clipped_self_normalised_ratios():
    ratio = np.array([1.0, 1.0, 2.0, 96.0])
    clipped = np.minimum(ratio / 25, 2.0)
    np.testing.assert_allclose(importance_weights(np.log(ratio), 2.0), clipped / clipped.sum())
    np.testing.assert_allclose(importance_weights(np.log(ratio) + 5000, 10.0), ratio / 100)


def test_effective_sample_size_in_its_two_extremes():
    assert effective_sample_size(np.full(40, 1 / 40)) == pytest.approx(40)
    assert effective_sample_size(np.array([1.0, 0, 0])) == pytest.approx(1)
    assert effective_sample_size(np.array([0.5, 0.5, 0, 0])) == pytest.approx(2)


def test_systematic_resampling_is_within_one_of_its_expectation_and_unbiased():
    rng = np.random.default_rng(2)
    weights = rng.random(30)
    weights /= weights.sum()
    counts = np.array([np.bincount(systematic_resample(weights, 50, rng), minlength=30) for _ in range(2000)])
    assert (counts.sum(axis=1) == 50).all()
    assert (np.abs(counts - 50 * weights) < 1 + 1e-9).all()
    np.testing.assert_allclose(counts.mean(axis=0), 50 * weights, atol=4 * 0.5 / np.sqrt(2000))
    assert sorted(systematic_resample(np.full(7, 1 / 7), 7, rng)) == list(range(7))
    assert len(systematic_resample(weights, 0, rng)) == 0


def test_resampled_states_have_the_mean_of_the_target_policy():
    """Behaviour N(0, 1), target N(1, 1), state = action: the resampled mean is the target's, 1."""
    rng = np.random.default_rng(3)
    actions = rng.standard_normal((20_000, 1))
    pool = OfflinePool(actions.astype(np.float32), actions, multivariate_normal(0, 1).logpdf(actions[:, 0]))
    weights = pool.weights(lambda s, a: multivariate_normal(1, 1).logpdf(a[:, 0]), clip=1e9)
    drawn = pool.states[systematic_resample(weights, 20_000, rng)]
    assert drawn.mean() == pytest.approx(1.0, abs=0.06)
    # For these two Gaussians E[w^2] = e, so the effective size is N / e.
    assert effective_sample_size(weights) == pytest.approx(20_000 / np.e, rel=0.15)


def memory_cost(cap, pool=None, **settings):
    config = MemoryConfig(window=1, max_states=cap, neighbours=2, embedding=0, **settings)
    return MemoryCost(config, BalanceConfig(), 1, 0, pool), FlashbulbMemory.empty(1, config, np.random.default_rng(0))


def add(stream, memory, met, n, log_pi=lambda s, a: np.zeros(len(s))):
    """The memory and the metrics after iteration n, which met these unsafe states."""
    states, nothing = np.asarray(met, np.float32).reshape(-1, 1, 1), np.zeros(0)
    unsafe = np.ones((len(met), 1), bool)
    batch = Batch(n, states, *[nothing] * 6, Normaliser.empty(1).frozen(), unsafe=unsafe)
    memory, _, metrics = stream.add_intrinsic_cost(memory, Balance.start(BalanceConfig()), batch, log_pi)
    return memory, metrics


def test_data_join_what_was_met_outlive_the_window_and_give_way_at_the_cap():
    pool = OfflinePool(np.array([[-1.0], [-2.0], [-3.0]], np.float32), np.zeros((3, 1)), np.zeros(3))
    stream, memory = memory_cost(5, pool)
    kept = []
    for n, met in enumerate([[], [1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11, 12], []]):
        memory, report = add(stream, memory, met, n)
        kept.append((sorted(memory.states[memory.iterations == OFFLINE].ravel()), memory.states.ravel()[-1:], memory))
        assert report["offline_ess"] == pytest.approx(3)
        assert memory.size <= 5
    assert [len(data) for data, _, _ in kept] == [3, 3, 1, 0, 3]
    assert kept[0][0] == kept[4][0] == [-3, -2, -1]
    assert kept[3][2].states.ravel().tolist() == [8, 9, 10, 11, 12]


def test_a_policy_that_does_as_the_record_did_in_one_state_draws_that_state():
    pool = OfflinePool(np.array([[-1.0], [-2.0]], np.float32), np.array([[0.0], [1.0]]), np.zeros(2))
    stream, memory = memory_cost(5, pool, offline_clip=1e9)
    memory, report = add(stream, memory, [], 0, lambda s, a: -50.0 * (a[:, 0] - 1) ** 2)
    assert memory.states.ravel().tolist() == [-2.0, -2.0]
    assert report["offline_ess"] == pytest.approx(1)


def test_the_same_iteration_draws_the_same_states_again():
    pool = OfflinePool(
        np.random.default_rng(0).standard_normal((50, 1)).astype(np.float32), np.zeros((50, 1)), np.zeros(50)
    )
    stream, memory = memory_cost(20, pool)
    first, again = (add(stream, memory, [], n)[0].states for n in (3, 3))
    np.testing.assert_array_equal(first, again)
    assert (add(stream, memory, [], 4)[0].states != first).any()
