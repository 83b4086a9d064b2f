"""The tasks as Gymnasium's users meet them."""

import copy
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from flashbulb.envs import env_ids, make
from flashbulb.envs.gym_tasks import GymEnv
from flashbulb.errors import UsageError

# Unbounded observations are what the original tasks have, and Gymnasium's own MuJoCo tasks as well.
UNBOUNDED = "A Box observation space (minimum|maximum) value is -?infinity"


@pytest.mark.parametrize("env_id", env_ids())
def test_gymnasium_finds_nothing_wrong(env_id: str) -> None:
    env = gymnasium.make(f"flashbulb/{env_id}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=f".*{UNBOUNDED}")
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("env_id", ["SafetyHopperVelocity-v1", "HazardField-v0"])
def test_a_single_environment_shows_final_observations(env_id: str) -> None:
    env, batch = gymnasium.make(f"flashbulb/{env_id}"), make(env_id, 1)
    obs, _ = env.reset(seed=4)
    np.testing.assert_array_equal(obs, batch.reset(seed=4)[0][0])
    env.action_space.seed(0)
    endings = 0
    while endings < 2:
        action = env.action_space.sample()
        obs, reward, terminated, truncated, info = env.step(action)
        first, rewards, costs, ends, cuts, batch_info = batch.step(action[None])
        np.testing.assert_array_equal(obs, batch_info["final_obs"][0])
        assert (reward, info["cost"], terminated, truncated) == (rewards[0], costs[0], ends[0], cuts[0])
        if terminated or truncated:
            endings += 1
            np.testing.assert_array_equal(env.reset()[0], first[0])  # the stream goes on without a gap
    assert (env.reset()[0] != obs).any()


@pytest.mark.parametrize("imports", ["import gymnasium, flashbulb", "import flashbulb, gymnasium"])
def test_importing_both_registers_in_any_order(imports: str) -> None:
    """Heavy libraries are still imported on demand only, so that `flashbulb --help` stays fast."""
    script = f"""
import sys
{imports}
assert "flashbulb/SafetyHopperVelocity-v1" in gymnasium.registry
assert not {{"mujoco", "jax", "numba", "matplotlib"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_spec_has_the_time_limit_of_the_task():
    from flashbulb.envs.hazard_field import HazardField
    from flashbulb.envs.navigation.tasks import ENV_IDS, parse
    from flashbulb.envs.velocity import VelocityTask

    steps = {env_id: parse(env_id)[1].episode_steps for env_id in ENV_IDS}
    steps |= {env_id: VelocityTask.max_episode_steps for env_id in env_ids() if "Velocity" in env_id}
    steps |= {"HazardField-v0": HazardField.max_episode_steps}
    assert set(steps) == set(env_ids())
    for env_id, expected in steps.items():
        assert gymnasium.spec(f"flashbulb/{env_id}").max_episode_steps == expected


def test_a_vector_is_the_native_batch():
    vector, batch = gymnasium.make_vec("flashbulb/HazardField-v0", num_envs=3), make("HazardField-v0", 3)
    assert vector.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    np.testing.assert_array_equal(vector.reset(seed=5)[0], batch.reset(seed=5)[0])
    actions = np.tile([[1.0, 0.3]], (3, 1))
    for _ in range(1000):
        obs, reward, terminated, truncated, info = vector.step(actions)
        expected = batch.step(actions)
    np.testing.assert_array_equal(obs, expected[0])
    np.testing.assert_array_equal(reward, expected[1])
    np.testing.assert_array_equal(info["cost"], expected[2])
    assert truncated.all()
    assert not terminated.any()
    np.testing.assert_array_equal(info["final_obs"], expected[5]["final_obs"])
    vector.close()


def test_a_list_of_seeds_has_one_for_each():
    vector, batch = gymnasium.make_vec("flashbulb/HazardField-v0", num_envs=3), make("HazardField-v0", 1)
    obs, _ = vector.reset(seed=[7, 3, 7])
    for row, seed in zip(obs, (7, 3, 7), strict=True):
        np.testing.assert_array_equal(row, batch.reset(seed=seed)[0][0])
    with pytest.raises(UsageError, match="seed: a list of 2 is not allowed; it must have 3"):
        vector.reset(seed=[1, 2])


def test_an_environment_survives_a_pickle_and_goes_on_as_the_original():
    env = gymnasium.make("flashbulb/HazardField-v0", render_mode="rgb_array")
    env.reset(seed=1)
    for _ in range(5):
        env.step(np.array([1.0, 0.2], np.float32))
    copies = pickle.loads(pickle.dumps(env)), copy.deepcopy(env)
    for _ in range(20):
        steps = [each.step(np.array([0.5, -0.4], np.float32)) for each in (env, *copies)]
        for other in steps[1:]:
            np.testing.assert_array_equal(steps[0][0], other[0])
            assert steps[0][1:] == other[1:]
    assert "goal_met" in steps[0][4]


def test_pictures():
    env = gymnasium.make("flashbulb/HazardField-v0", render_mode="rgb_array")
    env.reset(seed=1)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    for _ in range(20):
        env.step(np.array([1.0, 0.2], np.float32))
    assert (env.render() != first).any()
    env.close()
    with pytest.raises(UsageError, match="render_mode: 'ansi' is not allowed"):
        GymEnv("HazardField-v0", render_mode="ansi")


def test_stable_baselines_trains_on_a_task():
    sb3 = pytest.importorskip("stable_baselines3")
    sb3.PPO("MlpPolicy", gymnasium.make("flashbulb/HazardField-v0"), n_steps=64).learn(128)
