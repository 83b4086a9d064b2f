"""A trained policy in use: from Python without its environment, and as ONNX in another runtime."""

import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from gymnasium import spaces

import flashbulb
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.cli.main import run
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import load_arrays
from flashbulb.storage.run_directory import load_spaces, save_spaces
from tests.training.small_run import made_run

EXAMPLES = "tests.envs.gym_examples"
TASKS = {
    "box": ("cpo", "HazardField-v0"),
    "uneven": ("mice-pid", f"{EXAMPLES}:make_walk"),
    "discrete": ("cpo", f"{EXAMPLES}:make_buttons"),
    "unbounded": ("ppo", f"{EXAMPLES}:broken_infinite_bounds"),
    "crooked": ("cpo", f"{EXAMPLES}:make_crooked"),
    "budget": ("simmer-pid", f"{EXAMPLES}:make_six"),
    "double": ("cpo", "SafetyHopperVelocity-v1"),
    "near": ("trpo-pid", "HazardField-v0"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return {name: made_run(runs, name, *task) for name, task in TASKS.items()}


def observations(policy, count=200):
    """Around where the normaliser is, and far out, where everything clips."""
    rng = np.random.default_rng(1)
    (size,) = policy.observation_space.shape
    return np.concatenate([rng.normal(0.3, 2, (count, size)), rng.normal(0, 300, (count // 4, size))])


def by_hand(path, obs):
    """The definition in plain float64: near readings, standardise, clip, tanh layers, bounds."""
    arrays = load_arrays(next((path / "checkpoints").glob("*.safetensors")))
    if "normaliser/near" in arrays:
        obs = np.c_[obs, np.exp(20 * np.minimum(obs[:, arrays["normaliser/near"]] - 1, 0))]
    x = (obs - arrays["normaliser/mean"]) / np.sqrt(arrays["normaliser/variance"])
    x = np.clip(x, -10, 10)
    inside = "policy/mean" if "policy/log_std" in arrays else "policy"
    for k in range(3):
        x = x @ arrays[f"{inside}/{k}/weight"].astype(np.float64) + arrays[f"{inside}/{k}/bias"]
        x = np.tanh(x) if k < 2 else x
    return x


@pytest.mark.parametrize("name", TASKS)
def test_predict_is_the_definition(made, name):
    policy = flashbulb.load_policy(made[name])
    obs = observations(policy)
    raw, space = by_hand(made[name], obs), policy.action_space
    if isinstance(space, spaces.Discrete):
        expected = 5 + raw.argmax(axis=1)
    elif np.isfinite(space.low).all():
        unit = np.clip(raw, -1, 1)
        expected = space.low + (unit + 1) / 2 * (space.high - space.low)
        assert (np.abs(raw) > 1).any(), "some must be clipped for this to mean anything"
    else:
        expected = raw
    actions = policy.predict(obs)
    np.testing.assert_allclose(actions, expected, atol=2e-5)
    assert all(space.contains(action) for action in actions)
    np.testing.assert_allclose(policy.predict(obs[0]), actions[0], atol=1e-5)
    assert np.shape(policy.predict(obs[0])) == space.shape
    assert policy.predict(obs[:1]).shape == (1, *space.shape)


@pytest.mark.parametrize("name", TASKS)
def test_onnx_agrees_with_predict(made, name, capsys):
    assert run(["export", str(made[name]), "--to", "onnx"]) == 0
    assert "policy.onnx" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(made[name] / "policy.onnx")
    policy = flashbulb.load_policy(made[name])
    obs = observations(policy).astype(np.float32)
    (theirs,) = session.run(None, {"observation": obs})
    assert theirs.shape == (len(obs), *policy.action_space.shape)
    np.testing.assert_allclose(theirs, policy.predict(obs), atol=1e-5, rtol=1e-5 if name == "unbounded" else 0)
    (one,) = session.run(None, {"observation": obs[:1]})
    np.testing.assert_allclose(one, theirs[:1], atol=1e-5, rtol=1e-5)
    assert session.get_modelmeta().custom_metadata_map["task"] == TASKS[name][1]


def test_samples_have_the_distribution_of_the_policy(made):
    policy = flashbulb.load_policy(made["unbounded"], seed=3)
    obs = np.tile(observations(policy)[0], (20_000, 1))
    mean, std = policy.predict(obs[0]), np.exp(policy.params.log_std)
    samples = policy.predict(obs, deterministic=False)
    np.testing.assert_allclose((samples - mean).mean(axis=0) / std, 0, atol=4 / np.sqrt(len(obs)))
    np.testing.assert_allclose(samples.std(axis=0) / std, 1, atol=0.03)
    again = flashbulb.load_policy(made["unbounded"], seed=3).predict(obs, deterministic=False)
    np.testing.assert_array_equal(samples, again)

    policy = flashbulb.load_policy(made["discrete"], seed=3)
    obs = np.tile(observations(policy)[0], (20_000, 1))
    logits = by_hand(made["discrete"], obs[:1])[0]
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    shares = np.bincount(policy.predict(obs, deterministic=False) - 5, minlength=3) / len(obs)
    np.testing.assert_allclose(shares, expected, atol=0.015)


def test_the_budget_is_part_of_the_observation(made):
    policy = flashbulb.load_policy(made["budget"])
    assert policy.observation_space.shape == (4,)
    assert policy.budget == 17.0
    with pytest.raises(UsageError, match="what is left of the episode's cost budget"):
        policy.predict(np.zeros(3))


@pytest.mark.parametrize(
    "obs", [np.zeros(3), np.zeros((2, 3, 4)), "state", [[1.0], [2.0, 3.0]], np.full(35, np.nan), 1.0]
)
def test_wrong_observations_are_one_sentence(made, obs):
    with pytest.raises(UsageError, match=r"^obs: "):
        flashbulb.load_policy(made["box"]).predict(obs)


def test_a_checkpoint_can_be_named_and_a_torn_newest_one_is_passed_over(tmp_path, capsys):
    path = made_run(tmp_path, "two", done=2)
    good = path / "checkpoints" / "000002.safetensors"
    (path / "checkpoints" / "000003.safetensors").write_bytes(good.read_bytes()[:-50])
    policy = flashbulb.load_policy(path)
    assert policy.steps == 600
    assert "000003.safetensors is damaged" in capsys.readouterr().err
    obs = observations(policy)
    np.testing.assert_array_equal(flashbulb.load_policy(good).predict(obs), policy.predict(obs))
    good.unlink()
    with pytest.raises(UsageError, match="no checkpoint that can be read"):
        flashbulb.load_policy(path)


def test_what_is_no_run_is_one_sentence(tmp_path):
    for wrong in (tmp_path, tmp_path / "nowhere", __file__):
        with pytest.raises(UsageError, match="run: "):
            flashbulb.load_policy(wrong)


def test_it_needs_no_environment(made):
    """Neither ours nor the physics behind them, nor the module that made the environment."""
    code = (
        "import sys, flashbulb; p = flashbulb.load_policy(sys.argv[1]); p.predict([0.1, 0.2, 0.3]); "
        "print({'mujoco', 'numba', 'tests.envs.gym_examples'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(made["uneven"])], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_spaces_survive_json(tmp_path):
    class Env:
        single_observation_space = spaces.Box(np.float32([-np.inf, 0.1]), np.float32([np.inf, 0.7]))
        single_action_space = spaces.Box(-1.0, 1.0, (2, 3), np.float64)
        max_episode_steps = 12

    save_spaces(tmp_path, Env())
    loaded = load_spaces(tmp_path)
    assert loaded.observations == Env.single_observation_space
    assert loaded.actions == Env.single_action_space
    assert loaded.max_episode_steps == 12


def test_export_without_onnx_says_how_to_get_it(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"flashbulb\[export\]"):
        run(["export", str(made["box"])])


def test_near_entries_outside_the_observation_are_refused(made):
    policy = flashbulb.load_policy(made["near"])
    arrays = load_arrays(next((made["near"] / "checkpoints").glob("*.safetensors")))
    arrays["normaliser/near"] = arrays["normaliser/near"] + 1
    with pytest.raises(UsageError, match="normaliser is not one for"):
        TrainedPolicy(arrays, policy.spaces, policy.config)
