"""The closed form against the simulator: the same results from the same states, and never through an obstacle."""

import mujoco
import numba
import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation, point_motion
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, MujocoPhysics
from flashbulb.envs.navigation.point_dynamics import step_points
from flashbulb.envs.navigation.point_motion import SMALL
from flashbulb.envs.navigation.task_state import TaskState

NUM_ENVS = 40
# as compiled code has them; to Python they are plain functions
rotated, clear_of_box, clear_of_button = map(
    numba.njit, (point_motion.rotated, point_motion.clear_of_box, point_motion.clear_of_button)
)


# The least share of steps that need no simulator.
@pytest.mark.parametrize(("task", "share"), [("Goal1", 0.95), ("Circle1", 1.0), ("Button1", 0.6)])
def test_the_closed_form_arrives_where_mujoco_does(task, share):
    env = Navigation(f"SafetyPoint{task}-v0", NUM_ENVS, seed=0, threads=2)
    env.reset()
    rng, indices, shares = np.random.default_rng(0), np.arange(NUM_ENVS), []
    simulated = TaskState(**env.get_state())
    simulator = MujocoPhysics(env.model, env.rules, simulated, threads=2)
    for _ in range(40):
        actions = np.repeat(rng.uniform(-1, 1, (1, NUM_ENVS, 2)), 5, axis=0)
        closed_form = TaskState(**env.get_state())
        for name, rows in env.get_state().items():
            getattr(simulated, name)[:] = rows
        simulator.advance(indices, actions[0])
        to_simulate = np.empty(NUM_ENVS, dtype=np.int64)
        count = step_points(closed_form, env.rules, env.physics.motion, indices, actions[0], SUBSTEPS, to_simulate)
        moved = np.setdiff1d(indices, to_simulate[:count])
        before = env.state.physics[to_simulate[:count]]
        np.testing.assert_array_equal(closed_form.physics[to_simulate[:count]], before)  # left for the simulator
        qpos = slice(1, env.rules.velocity)
        np.testing.assert_array_equal(closed_form.physics[moved, 0], simulated.physics[moved, 0])
        np.testing.assert_allclose(closed_form.physics[moved, qpos], simulated.physics[moved, qpos], rtol=0, atol=2e-10)
        np.testing.assert_allclose(closed_form.physics[moved], simulated.physics[moved], rtol=0, atol=5e-9)
        np.testing.assert_allclose(closed_form.sensors[moved], simulated.sensors[moved], rtol=0, atol=2e-8)
        shares.append(len(moved) / NUM_ENVS)
        for row in actions:
            env.step(row)
    assert np.mean(shares) >= share


@pytest.mark.parametrize("largest", [1e-9, 1e-3, SMALL])
def test_a_small_turn_is_exact_to_the_last_digits(largest):
    rng = np.random.default_rng(0)
    for yaw, turn in zip(rng.uniform(-np.pi, np.pi, 500), rng.uniform(-largest, largest, 500), strict=True):
        found = rotated(np.cos(yaw), np.sin(yaw), turn)
        np.testing.assert_allclose(found, (np.cos(yaw + turn), np.sin(yaw + turn)), rtol=0, atol=4e-16)


@pytest.mark.parametrize("task", ["Goal1", "Circle1"])
def test_points_that_spin_faster_than_any_motor_turns_them(task):
    """Beyond the series of a small turn, in some lanes and not in others."""
    env = Navigation(f"SafetyPoint{task}-v0", NUM_ENVS, seed=0, threads=1)
    env.reset()
    env.state.physics[::3, env.rules.velocity + 2] = 600.0
    simulated, before = TaskState(**env.get_state()), env.state.physics.copy()
    actions = np.random.default_rng(0).uniform(-1, 1, (NUM_ENVS, 2))
    MujocoPhysics(env.model, env.rules, simulated, threads=1).advance(np.arange(NUM_ENVS), actions)
    to_simulate = np.empty(NUM_ENVS, dtype=np.int64)
    count = step_points(env.state, env.rules, env.physics.motion, np.arange(NUM_ENVS), actions, SUBSTEPS, to_simulate)
    moved = np.setdiff1d(np.arange(NUM_ENVS), to_simulate[:count])
    assert len(moved) > NUM_ENVS / 2
    assert (env.state.physics[moved, 3] - before[moved, 3] > SUBSTEPS * SMALL).sum() > NUM_ENVS / 6
    np.testing.assert_allclose(env.state.physics[moved], simulated.physics[moved], rtol=0, atol=5e-9)


def _touching(model, data, x, y, yaw, other):
    data.qpos[:3] = x, y, yaw
    mujoco.mj_forward(model, data)
    names = [{model.geom(int(g)).name for g in pair} for pair in data.contact.geom]
    return any(other in pair and not pair & {"floor"} for pair in names)


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_clearance_of_a_box_is_never_wrong_on_the_unsafe_side(tilt):
    env = Navigation("SafetyPointGoal1-v0", 1, seed=0, threads=1)
    model, data = env.model, mujoco.MjData(env.model)
    rng, clear, touching = np.random.default_rng(1), [], []
    for _ in range(1500):
        x, y, yaw, turn = *rng.uniform(-0.33, 0.33, 2), *rng.uniform(-np.pi, np.pi, 2)
        quaternion = np.zeros(4)
        mujoco.mju_mulQuat(
            quaternion,
            np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2)]),
            np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]),
        )
        data.qpos[3:] = 0, 0, 0.1, *quaternion
        touching.append(_touching(model, data, x, y, yaw, "vase0"))
        clear.append(clear_of_box(x, y, np.cos(yaw), np.sin(yaw), data.qpos[3:].copy(), 0.0))
    clear, touching = np.array(clear), np.array(touching)
    assert not (clear & touching).any()
    if tilt == 0:  # upright it is exact: what is not clear does touch
        assert (clear | touching).all()
        assert 100 < touching.sum() < 1400


def test_clearance_of_a_button_is_exact():
    env = Navigation("SafetyPointButton1-v0", 1, seed=0, threads=1)
    model, data = env.model, mujoco.MjData(env.model)
    data.mocap_pos[:] = [[0, 0, 0.1]] + [[20.0 * k, 20, 0.1] for k in range(1, 8)]
    data.qpos[3:].reshape(4, 7)[:, 0] = 50 + np.arange(4)
    rng = np.random.default_rng(1)
    places = [(*rng.uniform(-0.28, 0.28, 2), rng.uniform(-np.pi, np.pi)) for _ in range(800)]
    touching = np.array([_touching(model, data, *place, "button0") for place in places])
    clear = np.array([clear_of_button(x, y, np.cos(t), np.sin(t), np.zeros(3)) for x, y, t in places])
    np.testing.assert_array_equal(clear, ~touching)
    assert 100 < touching.sum() < 700
