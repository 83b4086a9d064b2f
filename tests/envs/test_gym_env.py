"""The tasks as Gymnasium's users meet them."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from flashbulb.envs import env_ids, make

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
