"""The compiled Car against the simulator: the same results from the same states, and never through an obstacle."""

import mujoco
import numpy as np
import pytest

from flashbulb.envs.navigation import Navigation
from flashbulb.envs.navigation.car_dynamics import car_clear_of_box, car_clear_of_button, disturbed_first, step_cars
from flashbulb.envs.navigation.mujoco_physics import SUBSTEPS, MujocoPhysics
from flashbulb.envs.navigation.task_state import TaskState

NUM_ENVS = 40


def _compiled_step(env, state, actions, substeps=SUBSTEPS):
    """Step all rows of `state` that need no simulator; returns which these are."""
    (to_simulate, order), physics = np.empty((2, len(actions)), np.int64), env.physics
    indices = np.arange(len(actions))
    disturbed = disturbed_first(state, env.rules, physics.boxes, indices, order)
    indices = np.sort(order[disturbed:])
    left = step_cars(state, env.rules, physics.boxes, physics.car, indices, actions[indices], substeps, to_simulate)
    return np.delete(indices, to_simulate[:left])


def _solve_exactly(model):
    """The model's tolerance, 1e-12, stops some steps 1e-7 short of the minimum. 20 iterations are enough."""
    model.opt.tolerance, model.opt.iterations = 0.0, 20


# The least share of steps that need no simulator; the first of twelve is the first of the episode, which always does.
@pytest.mark.parametrize(("task", "share"), [("Goal1", 0.85), ("Circle1", 0.9), ("Button1", 0.65)])
def test_the_compiled_step_arrives_where_mujoco_does(task, share):
    env = Navigation(f"SafetyCar{task}-v0", NUM_ENVS, seed=0, threads=2)
    env.reset()
    rng, indices, shares = np.random.default_rng(0), np.arange(NUM_ENVS), []
    simulated = TaskState(**env.get_state())
    _solve_exactly(env.model)
    simulator = MujocoPhysics(env.model, env.rules, simulated, threads=2)
    for _ in range(12):
        actions = np.repeat(rng.uniform(-1, 1, (1, NUM_ENVS, 2)), 12, axis=0)
        compiled, before = TaskState(**env.get_state()), env.get_state()
        for name, rows in before.items():
            getattr(simulated, name)[:] = rows
        simulator.advance(indices, actions[0])
        moved = _compiled_step(env, compiled, actions[0])
        left = np.setdiff1d(indices, moved)
        np.testing.assert_array_equal(compiled.physics[left], before["physics"][left])  # left for the simulator
        np.testing.assert_array_equal(compiled.physics[moved, 0], simulated.physics[moved, 0])
        robot = np.r_[1:14, env.rules.velocity : env.rules.velocity + 11]
        np.testing.assert_allclose(
            compiled.physics[np.ix_(moved, robot)], simulated.physics[np.ix_(moved, robot)], rtol=0, atol=2e-11
        )
        np.testing.assert_allclose(compiled.physics[moved], simulated.physics[moved], rtol=0, atol=2e-9)
        np.testing.assert_allclose(compiled.sensors[moved], simulated.sensors[moved], rtol=0, atol=5e-11)
        shares.append(len(moved) / NUM_ENVS)
        for row in actions:
            env.step(row)
    assert np.mean(shares) >= share


def _random_states(rng, count):
    """Cars near the floor in any pose and motion: most with some wheels in the floor, some in the air."""
    yaw, tilt, towards = rng.uniform(-np.pi, np.pi, count), rng.normal(0, 0.01, count), rng.uniform(0, np.pi, count)
    c, s = np.cos(yaw / 2), np.sin(yaw / 2)
    tx, ty = np.sin(tilt / 2) * np.cos(towards), np.sin(tilt / 2) * np.sin(towards)
    upright = np.cos(tilt / 2)
    rows = np.zeros((count, 25))
    rows[:, 1:3] = rng.uniform(-2, 2, (count, 2))
    rows[:, 3] = 0.1 + rng.uniform(-0.002, 0.002, count)
    rows[:, 4:8] = np.stack([c * upright, c * tx - s * ty, c * ty + s * tx, s * upright], axis=1)
    rows[:, 8:10] = rng.uniform(-50, 50, (count, 2))
    ball = rng.normal(size=(count, 4))
    rows[:, 10:14] = ball / np.linalg.norm(ball, axis=1, keepdims=True)
    rows[:, 14:] = rng.normal(size=(count, 11)) * np.r_[1, 1, 0.3, 2, 2, 5, 20, 20, 20, 20, 20]
    return rows


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_one_substep_from_random_states(count):
    """Contacts, accelerations and integration; 4e-12 in the velocity is 1e-9 in the acceleration."""
    env = Navigation("SafetyCarCircle1-v0", count, seed=0, threads=1)
    rng = np.random.default_rng(1)
    env.state.physics[:] = _random_states(rng, count)
    before, actions = env.state.physics.copy(), rng.uniform(-1, 1, (count, 2))
    moved = _compiled_step(env, env.state, actions, substeps=1)
    assert len(moved) > 0.99 * count
    _solve_exactly(env.model)
    data, after, sensors, contacts = mujoco.MjData(env.model), before.copy(), env.state.sensors.copy(), []
    for i in moved:
        data.qpos[:], data.qvel[:], data.ctrl[:] = before[i, 1:14], before[i, 14:], actions[i]
        data.qacc_warmstart[:] = 0
        mujoco.mj_step(env.model, data)
        contacts.append(data.ncon)
        after[i, 1:14], after[i, 14:] = data.qpos, data.qvel
        mujoco.mj_forward(env.model, data)
        sensors[i] = data.sensordata
    np.testing.assert_allclose(env.state.physics[:, 1:14], after[:, 1:14], rtol=0, atol=2e-14)
    np.testing.assert_allclose(env.state.physics[:, 14:], after[:, 14:], rtol=0, atol=4e-12)
    np.testing.assert_allclose(env.state.sensors, sensors, rtol=0, atol=2e-10)
    assert set(range(6)) <= set(contacts)  # every number of contacts did occur


def test_a_car_that_is_tipped_or_uncertain_is_left_to_the_simulator():
    env = Navigation("SafetyCarCircle1-v0", 4, seed=0, threads=1)
    env.state.physics[:] = _random_states(np.random.default_rng(0), 4)
    env.state.physics[:, 3] = 0.102, 0.1, 0.1, 0.05
    env.state.physics[:, 4:8] = [1, 0, 0, 0]
    env.state.physics[1, 4:8] = np.cos(0.15), np.sin(0.15), 0, 0  # tipped by 0.3 rad
    # the second and third touch at distance 0, the fourth lies with its body on the floor
    np.testing.assert_array_equal(_compiled_step(env, env.state, np.zeros((4, 2))), [0])


def test_results_depend_neither_on_threads_nor_on_the_batch():
    def run(threads, order):
        env = Navigation("SafetyCarButton1-v0", NUM_ENVS, seed=0, threads=threads)
        env.reset()
        env.set_state({name: rows[order] for name, rows in env.get_state().items()})
        actions = np.random.default_rng(0).uniform(-1, 1, (40, NUM_ENVS, 2))
        return [env.step(row[order])[0] for row in actions][-1]

    straight, backward = np.arange(NUM_ENVS), np.arange(NUM_ENVS)[::-1]
    np.testing.assert_array_equal(run(1, straight), run(2, straight))
    np.testing.assert_array_equal(run(1, straight), run(2, backward)[::-1])


def _touching(model, data, other):
    mujoco.mj_forward(model, data)
    names = [{model.geom(int(g)).name for g in pair} for pair in data.contact.geom]
    return any(other in pair and not pair & {"floor"} for pair in names)


def _places(rng, count, reach):
    return [(*rng.uniform(-reach, reach, 2), *rng.uniform(-np.pi, np.pi, 2)) for _ in range(count)]


def test_clearance_of_a_box_is_never_wrong_on_the_unsafe_side():
    env = Navigation("SafetyCarGoal1-v0", 1, seed=0, threads=1)
    model, data = env.model, mujoco.MjData(env.model)
    clear, touching = [], []
    for x, y, yaw, turn in _places(np.random.default_rng(1), 1500, 0.4):
        data.qpos[:7] = x, y, 0.1, np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)
        data.qpos[13:] = 0, 0, 0.1, np.cos(turn / 2), 0, 0, np.sin(turn / 2)
        touching.append(_touching(model, data, "vase0"))
        clear.append(car_clear_of_box(-x, -y, np.cos(yaw), np.sin(yaw), np.cos(turn), np.sin(turn), 0.0))
    clear, touching = np.array(clear), np.array(touching)
    assert not (clear & touching).any()
    assert (clear | touching).mean() > 0.97
    assert 200 < touching.sum() < 1300


def test_clearance_of_a_button_is_never_wrong_on_the_unsafe_side():
    env = Navigation("SafetyCarButton1-v0", 1, seed=0, threads=1)
    model, data = env.model, mujoco.MjData(env.model)
    data.mocap_pos[:] = [[0, 0, 0.1]] + [[20.0 * k, 20, 0.1] for k in range(1, 8)]
    data.qpos[13:].reshape(4, 7)[:, 0] = 50 + np.arange(4)
    clear, touching = [], []
    for x, y, yaw, _ in _places(np.random.default_rng(1), 1000, 0.35):
        data.qpos[:7] = x, y, 0.1, np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)
        touching.append(_touching(model, data, "button0"))
        clear.append(car_clear_of_button(-x, -y, np.cos(yaw), np.sin(yaw), 0.0))
    clear, touching = np.array(clear), np.array(touching)
    assert not (clear & touching).any()
    assert (clear | touching).mean() > 0.9
    assert 100 < touching.sum() < 900
