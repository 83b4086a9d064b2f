"""The simulator in compiled code against MuJoCo's own functions called from Python, one member after the other."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numba
import numpy as np
import pytest

from flashbulb.envs import atomic
from flashbulb.envs.simulator import CONTROL, FULL_PHYSICS, After, Simulator
from flashbulb.envs.velocity_robots import ROBOTS, load_model

MEMBERS = 7


def _batch(robot: str, seed: int = 0):
    model, rng = load_model(ROBOTS[robot]), np.random.default_rng(seed)
    states = np.zeros((MEMBERS, mujoco.mj_stateSize(model, FULL_PHYSICS)))
    states[:, 1 : 1 + model.nq] = model.qpos0 + rng.uniform(-0.1, 0.1, (MEMBERS, model.nq))
    states[:, 1 + model.nq :] = rng.uniform(-1, 1, (MEMBERS, model.nv))
    return model, states, rng.uniform(-1, 1, (MEMBERS, model.nu))


def _by_hand(model, state, controls, substeps, after, fields):
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, state, FULL_PHYSICS)
    data.ctrl = controls
    for _ in range(substeps):
        mujoco.mj_step(model, data)
    arrived = np.empty_like(state)
    mujoco.mj_getState(model, data, arrived, FULL_PHYSICS)
    warmstart = data.qacc_warmstart.copy()
    if after == After.FORCES:
        mujoco.mj_rnePostConstraint(model, data)
    elif after == After.SENSORS:
        mujoco.mj_forward(model, data)
    return arrived, warmstart, np.concatenate([getattr(data, field).ravel() for field in fields])


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("robot", "after", "fields"),
    [
        ("HalfCheetah", After.NOTHING, ("xpos", "qacc")),
        ("HalfCheetah", After.SENSORS, ("xpos", "qacc")),
        ("Humanoid", After.FORCES, ("cinert", "cfrc_ext")),
    ],
)
def test_like_mujoco_to_the_last_bit(robot, after, fields, threads):
    model, states, controls = _batch(robot)
    expected = [_by_hand(model, *row, 5, after, fields) for row in zip(states, controls, strict=True)]
    readings = np.zeros((MEMBERS, len(expected[0][2])))
    simulator = Simulator(model, states, readings, fields, 5, CONTROL, 1, threads, after, carries=True)
    simulator.members[:], simulator.controls[:, 0] = np.arange(MEMBERS), controls
    simulator.step(MEMBERS)
    simulator.close()
    for found, wanted in zip((states, simulator.warmstarts, readings), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_controls_by_substep_and_the_last_of_them_for_the_rest():
    model, states, _ = _batch("Hopper")
    rows = np.random.default_rng(1).uniform(-1, 1, (MEMBERS, 2, model.nu))
    data, expected = mujoco.MjData(model), []
    for state, row in zip(states, rows, strict=True):
        mujoco.mj_setState(model, data, state, FULL_PHYSICS)
        data.qacc_warmstart = 0
        for k in range(4):
            data.ctrl = row[min(k, 1)]
            mujoco.mj_step(model, data)
        expected.append(np.concatenate([[data.time], data.qpos, data.qvel]))
    simulator = Simulator(model, states, np.zeros((MEMBERS, 0)), (), 4, CONTROL, 2, threads=2)
    simulator.members[:], simulator.controls[:] = np.arange(MEMBERS), rows
    simulator.step(MEMBERS)
    np.testing.assert_array_equal(states, expected)


def test_only_the_named_members_move_and_sensing_moves_none():
    model, states, controls = _batch("HalfCheetah")
    before, readings = states.copy(), np.zeros((MEMBERS, model.nv))
    simulator = Simulator(model, states, readings, ("qacc",), 5, CONTROL, 1, 2, After.SENSORS)
    simulator.members[:3], simulator.controls[:3, 0] = (5, 0, 2), controls[[5, 0, 2]]
    simulator.sense(3)
    np.testing.assert_array_equal(states, before)
    expected = [_by_hand(model, before[m], controls[m], 0, After.SENSORS, ("qacc",)) for m in range(MEMBERS)]
    np.testing.assert_array_equal(readings[[0, 2, 5]], [expected[m][2] for m in (0, 2, 5)])
    simulator.step(3)
    np.testing.assert_array_equal((states != before).any(axis=1), np.isin(np.arange(MEMBERS), (0, 2, 5)))
    assert not readings[[1, 3, 4, 6]].any()


@pytest.mark.parametrize("threads", [2, 6])  # the latter more than there are cores
def test_awake_asleep_and_crowded_helpers_do_the_same(threads):
    model, lone, controls = _batch("Swimmer")
    shared = lone.copy()
    batches = []
    for states, count in ((lone, 1), (shared, threads)):
        simulator = Simulator(model, states, np.zeros((MEMBERS, 0)), (), 4, CONTROL, 1, count)
        simulator.members[:], simulator.controls[:, 0] = np.arange(MEMBERS), controls
        batches.append(simulator)
    for k in range(300):
        for simulator in batches:
            simulator.step(MEMBERS if k % 3 else 1 + k % MEMBERS)
        if k % 50 == 0:
            time.sleep(0.02)  # long enough to fall asleep
        np.testing.assert_array_equal(shared, lone)


def _helpers():
    return [thread for thread in threading.enumerate() if thread.name == "flashbulb-simulator"]


def test_helpers_end_when_closed_and_when_forgotten():
    gc.collect()
    before = len(_helpers())
    model, states, _ = _batch("Swimmer")
    closed, forgotten = (Simulator(model, states, np.zeros((MEMBERS, 0)), (), 4, CONTROL, 1, 3) for _ in range(2))
    assert len(_helpers()) == before + 4
    closed.close()
    closed.close()
    assert len(_helpers()) == before + 2
    del forgotten
    gc.collect()
    assert len(_helpers()) == before


@numba.njit(nogil=True)
def _count(counters, times):
    for _ in range(times):
        atomic.add(counters, 1, 1)
    return atomic.load(counters, 1)


def test_no_count_is_lost_between_threads():
    counters = np.zeros(3, np.int64)
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(_count, [counters] * 4, [200_000] * 4))
    assert counters.tolist() == [0, 800_000, 0]
    assert max(seen) == 800_000
