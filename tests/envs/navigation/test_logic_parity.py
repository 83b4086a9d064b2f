"""Layouts, lidars, rewards, costs, timers and goals on the recorded states: exact, physics left out."""

import numba
import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation
from flashbulb.envs.rng import mt_double
from tests.envs.navigation.golden import OTHER_LEVELS, TASKS, physics, trace

EXACT = {"rtol": 0, "atol": 1e-12}


class Replay:
    """Physics that arrives where the original did, with the sensor readings it recorded."""

    def __init__(self, env: Navigation) -> None:
        self.env, self.rows, self.z, self.t = env, physics(env.env_id), trace(env.env_id), 0

    def sense(self, indices, actions):
        self._write(self.env.state, self.rows[:, 0], self.z["obs_reset"])

    def advance(self, indices, actions):
        state = self.env.state
        self._write(state, self.rows[:, self.t + 1], self.z["obs"][:, self.t])
        if self.env.rules.touch < state.sensors.shape[1]:
            self._touch(state)
        self.t += 1

    def _write(self, state, rows, obs):
        state.physics[:] = rows
        state.sensors[:, :12] = obs[:, :12]
        if self.env.robot.name == "Car":
            state.sensors[:, 12:15], state.sensors[:, 15:19] = obs[:, 12:15], rows[:, 10:14]

    def _touch(self, state):
        """Contacts are physics: any contact that explains the recorded flags will do."""
        costs = dict(zip(self.z["cost_names"], np.nan_to_num(self.z["costs"][:, self.t]).T, strict=True))
        touch = state.sensors[:, self.env.rules.touch :]
        touch[:] = 0
        if "Goal2" in self.env.env_id:
            touch[:, 4] = costs["cost_vases_contact"]
            return
        for s in range(len(touch)):
            goal = self.z["frame_goal_button"][s, self.t]
            touch[s, goal] = self.z["goal_met"][s, self.t]
            touch[s, (goal + 1) % 4] = costs["cost_buttons"][s]
            touch[s, 5:6] = costs["cost_gremlins"][s]

    def close(self): ...


@pytest.fixture(params=TASKS + OTHER_LEVELS)
def env(request):
    env = Navigation(request.param, len(trace(request.param)["reward"]), seed=0, threads=1)
    env.physics = Replay(env)
    return env


def _next_doubles(env):
    draw = numba.njit(mt_double)
    return [draw(stream.copy()) for stream in env.state.rng]


def test_layout_and_first_observation(env):
    z = trace(env.env_id)
    obs, _ = env.reset(seed=0)
    np.testing.assert_array_equal(env.state.objects[:, 0, :2], z["static_agent_xy0"])
    np.testing.assert_array_equal(env.state.objects[:, 0, 2], z["static_agent_rot0"])
    for name in ("hazards", "buttons", "gremlins"):
        if f"static_{name}_xy0" in z:
            rows = slice(*getattr(env.rules, name))
            np.testing.assert_array_equal(env.state.objects[:, rows, :2], z[f"static_{name}_xy0"])
            if f"static_{name}_rot0" in z:
                np.testing.assert_array_equal(env.state.objects[:, rows, 2], z[f"static_{name}_rot0"])
    np.testing.assert_array_equal(_next_doubles(env), z["rng_probe_reset"])
    np.testing.assert_allclose(obs, z["obs_reset"], **EXACT)


def test_every_step(env):
    z, rules = trace(env.env_id), env.rules
    env.reset(seed=0)
    for t in range(z["reward"].shape[1]):
        obs, reward, cost, terminated, truncated, info = env.step(z["action"][:, t])
        np.testing.assert_allclose(obs, z["obs"][:, t], **EXACT)
        np.testing.assert_allclose(reward, z["reward"][:, t], **EXACT)
        np.testing.assert_array_equal(cost, z["cost"][:, t])
        np.testing.assert_array_equal(info["goal_met"], z["goal_met"][:, t])
        for k, name in enumerate(z["cost_names"][:-1]):
            if name in info:
                np.testing.assert_array_equal(info[name], np.nan_to_num(z["costs"][:, t, k]))
        if rules.goal >= 0:
            np.testing.assert_array_equal(env.state.objects[:, rules.goal, :2], z["frame_goal_pos"][:, t + 1, :2])
            np.testing.assert_allclose(env.state.last_distance, z["frame_last_dist_goal"][:, t + 1], **EXACT)
        if "frame_goal_button" in z:
            np.testing.assert_array_equal(env.state.timer, z["frame_button_timer"][:, t + 1])
            np.testing.assert_array_equal(env.state.button, z["frame_goal_button"][:, t + 1])
        assert not terminated.any()
        assert not truncated.any()
    np.testing.assert_array_equal(_next_doubles(env), z["rng_probe_end"])
