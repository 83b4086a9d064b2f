"""Robots moved by compiled dynamics of our own, against MuJoCo itself with its solver's tolerance at zero."""

import ctypes
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from flashbulb.envs import make
from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.velocity.robot_dynamics import RobotDynamics, step_function
from flashbulb.envs.velocity.velocity_robots import ROBOTS, DynamicsKind, load_model

OWN = [name for name, robot in ROBOTS.items() if robot.dynamics]
NUMBERS, WHOLE = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int64)
KINDS = (NUMBERS, WHOLE, NUMBERS, NUMBERS)
Mover = Callable[[np.ndarray, np.ndarray, int], bool]


def exact_model(robot: str) -> mujoco.MjModel:
    model = load_model(ROBOTS[robot])
    model.opt.tolerance, model.opt.ls_tolerance = 0, 1e-10
    return model


def mover(model: mujoco.MjModel, positions: np.ndarray | None = None) -> Mover:
    """What moves a state under a control by so many substeps, and writes the bodies' positions if it can."""
    kind: DynamicsKind = "planar" if model.nq == model.nv else "spatial"
    robot, function = RobotDynamics(kind, model).new_memory(), step_function(kind).ctypes
    readings = np.zeros(3 * model.nbody) if positions is None else positions

    def move(state: np.ndarray, control: np.ndarray, substeps: int) -> bool:
        arrays = (array.ctypes.data_as(kind) for array, kind in zip((*robot, state, control), KINDS, strict=True))
        return bool(function(*arrays, substeps, readings.ctypes.data_as(KINDS[0])))

    return move


def random_states(model: mujoco.MjModel, count: int, seed: int) -> np.ndarray:
    """From standing to lying, joints within their limits and beyond, at rest and fast."""
    rng = np.random.default_rng(seed)
    states = np.zeros((count, mujoco.mj_stateSize(model, FULL_PHYSICS)))
    positions, velocities = states[:, 1 : 1 + model.nq], states[:, 1 + model.nq :]
    positions[:, 0] = rng.uniform(-50, 50, count)
    if model.nq == model.nv:
        positions[:, 1] = model.qpos0[1] + rng.uniform(-0.6 * model.body_pos[1, 2], 0.3, count)
        positions[:, 2] = rng.normal(0, 0.5, count)
    else:
        positions[:, 1], positions[:, 2] = rng.uniform(-50, 50, count), rng.uniform(0.1, 1.2, count)
        positions[:, 3:7] = [1, 0, 0, 0] + rng.choice([0.1, 1.0], (count, 1)) * rng.normal(size=(count, 4))
        positions[:, 3:7] /= np.linalg.norm(positions[:, 3:7], axis=1, keepdims=True)
    limits = model.jnt_range[model.jnt_limited.astype(bool)]
    positions[:, -len(limits) :] = rng.uniform(limits[:, 0] - 0.1, limits[:, 1] + 0.1, (count, len(limits)))
    velocities[:] = rng.choice([0.0, 0.1, 1.0, 5.0], (count, 1)) * rng.normal(size=(count, model.nv))
    return states


def compare(robot: str, count: int, seed: int) -> dict[str, float]:
    """One substep from random states by both: largest differences, and how often what happened."""
    model = exact_model(robot)
    data, bodies = mujoco.MjData(model), np.zeros(3 * model.nbody)
    move, nq = mover(model, bodies), model.nq
    controls = np.random.default_rng(seed + 1).uniform(-1, 1, (count, model.nu))
    found = {"position": 0.0, "velocity": 0.0, "bodies": 0.0, "floor": 0, "limits": 0, "left": 0, "itself": 0}
    for state, control in zip(random_states(model, count, seed), controls, strict=True):
        mujoco.mj_setState(model, data, state, FULL_PHYSICS)
        data.ctrl, data.qacc_warmstart = control, 0
        mujoco.mj_forward(model, data)
        itself = bool((model.geom_bodyid[data.contact.geom[: data.ncon]] > 0).all(axis=1).any())
        found["floor"] += data.ncon > 0
        found["limits"] += np.any(data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
        found["itself"] += itself
        before = state.copy()
        if not move(state, control, 1):
            found["left"] += 1
            np.testing.assert_array_equal(state, before)
            continue
        assert not itself
        mujoco.mj_step(model, data)
        scale = 1 + np.abs(data.qacc).max() * model.opt.timestep
        assert state[0] == data.time
        found["position"] = max(found["position"], np.abs(state[1 : 1 + nq] - data.qpos).max() / scale)
        found["velocity"] = max(found["velocity"], np.abs(state[1 + nq :] - data.qvel).max() / scale)
        if robot == "Ant":
            found["bodies"] = max(found["bodies"], np.abs(bodies - data.xpos.ravel()).max())
    return found


def check(found: dict[str, float], count: int, robot: str) -> None:
    assert found["position"] < 1e-12
    assert found["velocity"] < 1e-11
    assert found["bodies"] < 1e-12
    assert min(found["floor"], found["limits"]) > 0.2 * count
    assert count - found["floor"] > 0.05 * count  # in the air, too
    if robot == "Hopper":
        assert found["itself"] > 0
    else:
        assert found["itself"] == found["left"] == 0


@pytest.mark.parametrize("robot", OWN)
def test_like_mujoco_from_random_states(robot: str) -> None:
    check(compare(robot, 1_500, seed=0), 1_500, robot)


@pytest.mark.slow
@pytest.mark.parametrize("robot", OWN)
def test_like_mujoco_from_a_hundred_thousand_states(robot: str) -> None:
    check(compare(robot, 100_000, seed=1), 100_000, robot)


@pytest.mark.parametrize("robot", OWN)
def test_whole_steps_of_both_backends_agree(robot: str) -> None:
    """Twenty steps of eight robots from the same states at every step, under the same random actions."""
    ours, theirs = (make(f"Safety{robot}Velocity-v1", 8, seed=3, physics=kind) for kind in ("compiled", "rollout"))
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = rng.uniform(-1, 1, (8, *ours.single_action_space.shape))
        for a, b in zip(ours.step(actions)[:5], theirs.step(actions)[:5], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
        theirs.set_state(ours.get_state())


@pytest.mark.parametrize("robot", ["Hopper", "Ant"])
def test_threads_do_not_change_a_bit(robot: str) -> None:
    one, several = (make(f"Safety{robot}Velocity-v1", 8, seed=3, threads=threads) for threads in (1, 3))
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.uniform(-1, 1, (8, *one.single_action_space.shape))
        for a, b in zip(one.step(actions)[:5], several.step(actions)[:5], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("robot", ["HalfCheetah", "Ant"])
def test_a_robot_that_leaves_sane_numbers_is_left_to_mujoco(robot: str) -> None:
    model = exact_model(robot)
    move = mover(model)
    for k, number in ((1, np.nan), (1 + model.nq, 1e11), (model.nq, np.inf)):
        state = random_states(model, 1, 0)[0]
        state[k] = number
        before = state.copy()
        assert not move(state, np.zeros(model.nu), 5)
        np.testing.assert_array_equal(state, before)


@pytest.mark.parametrize("robot", ["Hopper", "Ant"])
def test_a_step_depends_on_the_state_alone(robot: str) -> None:
    """Not on what the memory held: after another robot's step, after one that was given up, the same bits."""
    model = exact_model(robot)
    states, control, move = random_states(model, 200, 5), np.full(model.nu, 0.5), mover(model)
    states[::10, -1] = np.nan
    for state in states:
        fresh, used = state.copy(), state.copy()
        done = mover(model)(fresh, control, 4)
        assert move(used, control, 4) == done
        np.testing.assert_array_equal(fresh, used)
