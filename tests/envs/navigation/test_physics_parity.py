"""One step from every recorded state: MuJoCo 3 with our shared model against the original on 2.3.3."""

import numpy as np
import pytest

from tests.envs.navigation.golden import OTHER_LEVELS, TASKS, all_frames, trace

# |qpos|, |obs| after one step from the recorded state, away from contacts (see docs/parity.md)
TOLERANCE = {"Point": (1e-11, 2e-9), "Car": (1e-6, 1e-4)}
REACH = {"Point": 0.31, "Car": 0.37}  # centre to centre, robot to box, beyond which they cannot touch
BUTTON_REACH = {"Point": 0.27, "Car": 0.33}


def _clear(env, before, after):
    """Environments whose robot could touch neither box nor button during the step."""
    clear = np.ones(len(before), dtype=bool)
    for rows in (before, after):
        for _, column, _ in env.rules.free:
            gap = np.hypot(*(rows[:, column : column + 2] - rows[:, 1:3]).T)
            clear &= gap > REACH[env.robot.name]
        for k in range(*env.rules.buttons):
            gap = np.hypot(*(env.state.objects[:, k, :2] - rows[:, 1:3]).T)
            clear &= gap > BUTTON_REACH[env.robot.name]
    return clear


@pytest.mark.parametrize("env_id", TASKS + OTHER_LEVELS)
def test_one_step_from_every_recorded_state(env_id):
    env, actions, arrived = all_frames(env_id)
    z = trace(env_id)
    before = env.state.physics.copy()
    obs, reward, cost, terminated, truncated, info = env.step(actions)
    after = env.state.physics
    clear = _clear(env, before, arrived)
    if env.robot.name == "Car":
        clear &= np.arange(len(actions)) % z["reward"].shape[1] > 0  # at rest its wheels touch at distance 0 ± rounding
    assert clear.mean() > 0.6
    np.testing.assert_array_equal(after[:, 0], arrived[:, 0])
    qpos, sensed = TOLERANCE[env.robot.name]
    robot = slice(1, 1 + env.robot.qpos)
    np.testing.assert_allclose(after[clear, robot], arrived[clear, robot], rtol=0, atol=qpos)
    boxes = slice(1 + env.robot.qpos, 1 + env.model.nq)
    np.testing.assert_allclose(after[clear, boxes], arrived[clear, boxes], rtol=0, atol=2e-9)
    same_goal = clear & ~z["goal_met"].ravel()  # a new goal comes from the random stream, tested elsewhere
    np.testing.assert_allclose(obs[same_goal], z["obs"].reshape(len(obs), -1)[same_goal], rtol=0, atol=sensed)
    np.testing.assert_allclose(reward[clear], z["reward"].ravel()[clear], rtol=0, atol=1e-7)
    np.testing.assert_array_equal(cost[clear], z["cost"].ravel()[clear])
    np.testing.assert_array_equal(info["goal_met"], z["goal_met"].ravel())
    assert not terminated.any()
    assert not truncated.any()


@pytest.mark.parametrize("env_id", [t for t in TASKS + OTHER_LEVELS if "Goal2" in t])
def test_vases_touched_at_every_recorded_state(env_id):
    env, actions, arrived = all_frames(env_id)
    z = trace(env_id)
    env.state.physics[:] = arrived
    env.physics.sense(np.arange(len(actions)), actions)
    recorded = z["costs"][..., list(z["cost_names"]).index("cost_vases_contact")].ravel()
    np.testing.assert_array_equal((env.state.sensors[:, env.rules.touch :] > 0).any(1), recorded > 0)
    assert recorded.sum() > 0


@pytest.mark.parametrize("env_id", [t for t in TASKS if "Button" in t])
def test_contacts_at_every_recorded_state(env_id):
    """Who touches whom, pair by pair of robot and object, where the original arrived."""
    env, actions, arrived = all_frames(env_id)
    z = trace(env_id)
    pressed, timer = env.state.button.copy(), env.state.timer.copy()
    env.state.physics[:] = arrived
    env.physics.sense(np.arange(len(actions)), actions)
    touch = env.state.sensors[:, env.rules.touch :] > 0
    chosen = np.arange(4) == pressed[:, None]
    costs = dict(zip(z["cost_names"], z["costs"].reshape(-1, 5).T, strict=True))
    np.testing.assert_array_equal((touch[:, :4] & chosen).any(1), z["goal_met"].ravel())
    np.testing.assert_array_equal(touch[:, 4:].any(1), costs["cost_gremlins"] > 0)
    np.testing.assert_array_equal((touch[:, :4] & ~chosen).any(1)[timer == 0], costs["cost_buttons"][timer == 0] > 0)
    assert costs["cost_gremlins"].sum() > 30  # the trace does contain what is tested
