"""The closed form against the simulator: from the same states the same arrivals, and never through an obstacle."""

import mujoco
import numba
import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation, clearance, motion
from flashbulb.envs.navigation.motion import SMALL
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, SimulatedPhysics
from flashbulb.envs.navigation.point_dynamics import glide
from flashbulb.envs.navigation.task_state import Batch

MEMBERS = 40
# as compiled code has them; to Python they are plain functions
turned, clear_of_box, clear_of_button = map(
    numba.njit, (motion.turned, clearance.clear_of_box, clearance.clear_of_button)
)


# The share of steps that need no simulator, from below; it is the point of the whole exercise.
@pytest.mark.parametrize(("task", "share"), [("Goal1", 0.95), ("Circle1", 1.0), ("Button1", 0.6)])
def test_gliding_arrives_where_mujoco_does(task, share):
    env = Navigation(f"SafetyPoint{task}-v0", MEMBERS, seed=0, threads=2)
    env.reset()
    rng, everyone, glided = np.random.default_rng(0), np.arange(MEMBERS), []
    simulated = Batch(**env.get_state())
    simulator = SimulatedPhysics(env.model, env.rules, simulated, threads=2)
    for _ in range(40):
        actions = np.repeat(rng.uniform(-1, 1, (1, MEMBERS, 2)), 5, axis=0)
        gliding = Batch(**env.get_state())
        for name, rows in env.get_state().items():
            getattr(simulated, name)[:] = rows
        simulator.advance(everyone, actions[0])
        others = np.empty(MEMBERS, dtype=np.int64)
        count = glide(gliding, env.rules, env.physics.course, everyone, actions[0], SUBSTEPS, others)
        mine = np.setdiff1d(everyone, others[:count])
        before = env.batch.physics[others[:count]]
        np.testing.assert_array_equal(gliding.physics[others[:count]], before)  # left for the simulator
        qpos = slice(1, env.rules.velocity)
        np.testing.assert_array_equal(gliding.physics[mine, 0], simulated.physics[mine, 0])
        np.testing.assert_allclose(gliding.physics[mine, qpos], simulated.physics[mine, qpos], rtol=0, atol=2e-10)
        np.testing.assert_allclose(gliding.physics[mine], simulated.physics[mine], rtol=0, atol=5e-9)
        np.testing.assert_allclose(gliding.sensors[mine], simulated.sensors[mine], rtol=0, atol=2e-8)
        glided.append(len(mine) / MEMBERS)
        for row in actions:
            env.step(row)
    assert np.mean(glided) >= share


@pytest.mark.parametrize("largest", [1e-9, 1e-3, SMALL])
def test_a_small_turn_is_exact_to_the_last_digits(largest):
    rng = np.random.default_rng(0)
    for yaw, turn in zip(rng.uniform(-np.pi, np.pi, 500), rng.uniform(-largest, largest, 500), strict=True):
        found = turned(np.cos(yaw), np.sin(yaw), turn)
        np.testing.assert_allclose(found, (np.cos(yaw + turn), np.sin(yaw + turn)), rtol=0, atol=4e-16)


@pytest.mark.parametrize("task", ["Goal1", "Circle1"])
def test_points_that_spin_faster_than_any_motor_turns_them(task):
    """Beyond the series of a small turn, in some lanes and not in others."""
    env = Navigation(f"SafetyPoint{task}-v0", MEMBERS, seed=0, threads=1)
    env.reset()
    env.batch.physics[::3, env.rules.velocity + 2] = 600.0
    simulated, before = Batch(**env.get_state()), env.batch.physics.copy()
    actions = np.random.default_rng(0).uniform(-1, 1, (MEMBERS, 2))
    SimulatedPhysics(env.model, env.rules, simulated, threads=1).advance(np.arange(MEMBERS), actions)
    others = np.empty(MEMBERS, dtype=np.int64)
    count = glide(env.batch, env.rules, env.physics.course, np.arange(MEMBERS), actions, SUBSTEPS, others)
    mine = np.setdiff1d(np.arange(MEMBERS), others[:count])
    assert len(mine) > MEMBERS / 2
    assert (env.batch.physics[mine, 3] - before[mine, 3] > SUBSTEPS * SMALL).sum() > MEMBERS / 6
    np.testing.assert_allclose(env.batch.physics[mine], simulated.physics[mine], rtol=0, atol=5e-9)


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
