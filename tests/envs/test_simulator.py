"""The simulators against MuJoCo's own functions called from Python, and against each other."""

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numba
import numpy as np
import pytest

from flashbulb.envs import make
from flashbulb.envs.compiled_simulator import CompiledSimulator, atomic_add, atomic_load
from flashbulb.envs.simulator import FULL_PHYSICS, After, RolloutSimulator, StepPlan, make_simulator, selected_backend
from flashbulb.envs.velocity.velocity_robots import ROBOTS, load_model
from flashbulb.errors import UsageError

NUM_ENVS = 7
SIMULATORS = pytest.mark.parametrize("simulator_class", [CompiledSimulator, RolloutSimulator])


def _batch(robot: str, seed: int = 0):
    model, rng = load_model(ROBOTS[robot]), np.random.default_rng(seed)
    states = np.zeros((NUM_ENVS, mujoco.mj_stateSize(model, FULL_PHYSICS)))
    states[:, 1 : 1 + model.nq] = model.qpos0 + rng.uniform(-0.1, 0.1, (NUM_ENVS, model.nq))
    states[:, 1 + model.nq :] = rng.uniform(-1, 1, (NUM_ENVS, model.nv))
    return model, states, rng.uniform(-1, 1, (NUM_ENVS, model.nu))


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


@SIMULATORS
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("robot", "after", "fields"),
    [
        ("HalfCheetah", After.NOTHING, ("xpos", "qacc")),
        ("HalfCheetah", After.SENSORS, ("xpos", "qacc")),
        ("Humanoid", After.FORCES, ("cinert", "cfrc_ext")),
    ],
)
def test_like_mujoco_to_the_last_bit(robot, after, fields, threads, simulator_class):
    model, states, controls = _batch(robot)
    expected = [_by_hand(model, *row, 5, after, fields) for row in zip(states, controls, strict=True)]
    readings = np.zeros((NUM_ENVS, len(expected[0][2])))
    plan = StepPlan(5, after=after, carry_warmstart=True)
    simulator = simulator_class(model, states, readings, fields, plan, threads)
    simulator.indices[:], simulator.controls[:, 0] = np.arange(NUM_ENVS), controls
    simulator.step(NUM_ENVS)
    simulator.close()
    for found, wanted in zip((states, simulator.warmstarts, readings), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found, wanted)


@SIMULATORS
def test_controls_by_substep_and_the_last_of_them_for_the_rest(simulator_class):
    model, states, _ = _batch("Hopper")
    rows = np.random.default_rng(1).uniform(-1, 1, (NUM_ENVS, 2, model.nu))
    data, expected = mujoco.MjData(model), []
    for state, row in zip(states, rows, strict=True):
        mujoco.mj_setState(model, data, state, FULL_PHYSICS)
        data.qacc_warmstart = 0
        for k in range(4):
            data.ctrl = row[min(k, 1)]
            mujoco.mj_step(model, data)
        expected.append(np.concatenate([[data.time], data.qpos, data.qvel]))
    simulator = simulator_class(model, states, np.zeros((NUM_ENVS, 0)), (), StepPlan(4, control_rows=2), threads=2)
    simulator.indices[:], simulator.controls[:] = np.arange(NUM_ENVS), rows
    simulator.step(NUM_ENVS)
    np.testing.assert_array_equal(states, expected)
    simulator.close()


@SIMULATORS
def test_only_the_named_rows_move_and_sensing_moves_none(simulator_class):
    model, states, controls = _batch("HalfCheetah")
    before, readings = states.copy(), np.zeros((NUM_ENVS, model.nv))
    simulator = simulator_class(model, states, readings, ("qacc",), StepPlan(5, after=After.SENSORS), 2)
    simulator.indices[:3], simulator.controls[:3, 0] = (5, 0, 2), controls[[5, 0, 2]]
    simulator.sense(3)
    np.testing.assert_array_equal(states, before)
    expected = [_by_hand(model, before[m], controls[m], 0, After.SENSORS, ("qacc",)) for m in range(NUM_ENVS)]
    np.testing.assert_array_equal(readings[[0, 2, 5]], [expected[m][2] for m in (0, 2, 5)])
    simulator.step(3)
    np.testing.assert_array_equal((states != before).any(axis=1), np.isin(np.arange(NUM_ENVS), (0, 2, 5)))
    assert not readings[[1, 3, 4, 6]].any()
    simulator.close()


@pytest.mark.parametrize("threads", [2, 6])  # the latter more than there are cores
def test_awake_sleeping_and_too_many_threads_do_the_same(threads):
    model, lone, controls = _batch("Swimmer")
    shared = lone.copy()
    batches = []
    for states, count in ((lone, 1), (shared, threads)):
        simulator = CompiledSimulator(model, states, np.zeros((NUM_ENVS, 0)), (), StepPlan(4), count)
        simulator.indices[:], simulator.controls[:, 0] = np.arange(NUM_ENVS), controls
        batches.append(simulator)
    for k in range(300):
        for simulator in batches:
            simulator.step(NUM_ENVS if k % 3 else 1 + k % NUM_ENVS)
        if k % 50 == 0:
            time.sleep(0.02)  # long enough to fall asleep
        np.testing.assert_array_equal(shared, lone)


@SIMULATORS
@pytest.mark.parametrize("count", [0, 1, NUM_ENVS])
@pytest.mark.parametrize("threads", [1, 3])
def test_work_meanwhile_is_done_once_and_changes_no_row(simulator_class, threads, count):
    model, states, controls = _batch("Swimmer")
    alone, done = states.copy(), []
    for rows, meanwhile in ((alone, None), (states, lambda: done.append(time.sleep(0.001)))):
        simulator = simulator_class(model, rows, np.zeros((NUM_ENVS, 0)), (), StepPlan(4), threads)
        simulator.indices[:], simulator.controls[:, 0] = np.arange(NUM_ENVS), controls
        simulator.step(count, meanwhile)
        simulator.close()
    assert len(done) == 1
    np.testing.assert_array_equal(states, alone)


def test_where_work_meanwhile_fails_no_thread_still_steps_a_row():
    model, states, controls = _batch("Swimmer")
    simulator = CompiledSimulator(model, states, np.zeros((NUM_ENVS, 0)), (), StepPlan(4), 3)
    simulator.indices[:], simulator.controls[:, 0] = np.arange(NUM_ENVS), controls
    with pytest.raises(ZeroDivisionError):
        simulator.step(NUM_ENVS, lambda: 1 / 0)
    after = states.copy()
    time.sleep(0.02)
    np.testing.assert_array_equal(states, after)
    assert states[:, 0].min() > 0  # the clock: every row was stepped
    simulator.close()


def _worker_threads():
    return [thread for thread in threading.enumerate() if thread.name == "flashbulb-simulator"]


def test_threads_end_when_closed_and_when_forgotten():
    gc.collect()
    before = len(_worker_threads())
    model, states, _ = _batch("Swimmer")
    closed, forgotten = (
        CompiledSimulator(model, states, np.zeros((NUM_ENVS, 0)), (), StepPlan(4), 3) for _ in range(2)
    )
    assert len(_worker_threads()) == before + 4
    closed.close()
    closed.close()
    assert len(_worker_threads()) == before + 2
    del forgotten
    gc.collect()
    assert len(_worker_threads()) == before


@numba.njit(nogil=True)
def _count(counters, times):
    for _ in range(times):
        atomic_add(counters, 1, 1)
    return atomic_load(counters, 1)


def test_no_count_is_lost_between_threads():
    counters = np.zeros(3, np.int64)
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(_count, [counters] * 4, [200_000] * 4))
    assert counters.tolist() == [0, 800_000, 0]
    assert max(seen) == 800_000


BACKEND_TASKS = ["SwimmerVelocity-v1", "HumanoidVelocity-v1", "PointGoal1-v0", "CarGoal1-v0"]


@pytest.mark.parametrize("task", [*BACKEND_TASKS, "PointButton1-v0"])
def test_both_backends_give_the_same_steps_to_the_last_bit(task, monkeypatch):
    compiled, rollout = (make(f"Safety{task}", 4, seed=3, threads=2, physics=p) for p in ("compiled", "rollout"))
    np.testing.assert_array_equal(compiled.reset()[0], rollout.reset()[0])
    if task == "PointGoal1-v0":  # against the vase
        layout = {"agent": [0.0, 0.0, 0.0], "vases": [0.3, 0.0, 0.0]}
        np.testing.assert_array_equal(compiled.set_layout(layout), rollout.set_layout(layout))
        advance, simulated = rollout._simulator.advance, []
        monkeypatch.setattr(rollout._simulator, "advance", lambda *a: (simulated.append(len(a[0])), advance(*a)))
    space, rng = compiled.single_action_space, np.random.default_rng(0)
    for _ in range(40):
        actions = rng.uniform(space.low, space.high, (4, *space.shape))
        actions[0, 0] = space.high[0]
        ours, theirs = compiled.step(actions), rollout.step(actions)
        for a, b in zip(ours[:5], theirs[:5], strict=True):
            np.testing.assert_array_equal(a, b)
        before, after = compiled.get_state(), rollout.get_state()
        for name, rows in before.items():
            np.testing.assert_array_equal(rows, after[name], err_msg=name)
    if task == "PointGoal1-v0":
        assert sum(simulated) > 20
    compiled.close(), rollout.close()


def test_the_backend_is_chosen_by_argument_then_by_environment_variable(monkeypatch):
    assert selected_backend(None) == "compiled"
    monkeypatch.setenv("FLASHBULB_PHYSICS", "rollout")
    assert selected_backend(None) == "rollout"
    assert selected_backend("compiled") == "compiled"
    monkeypatch.setenv("FLASHBULB_PHYSICS", "fast")
    with pytest.raises(UsageError, match="physics: 'fast' is not allowed; it must be one of compiled, rollout"):
        selected_backend(None)


def test_a_platform_without_the_compiled_simulator_is_told_of_the_other(monkeypatch):
    model, states, _ = _batch("Swimmer")
    monkeypatch.setitem(sys.modules, "flashbulb.envs.compiled_simulator", None)  # importing it now fails
    arguments = model, states, np.zeros((NUM_ENVS, 0)), (), StepPlan(4), 1
    with pytest.raises(UsageError, match="FLASHBULB_PHYSICS=rollout"):
        make_simulator(*arguments, "compiled")
    assert isinstance(make_simulator(*arguments, "rollout"), RolloutSimulator)
    for task in ("SwimmerVelocity-v1", "PointGoal2-v0", "CarCircle1-v0"):  # the whole task runs without it
        env = make(f"Safety{task}", 2, physics="rollout")
        env.reset()
        env.step(np.zeros((2, 2)))
        env.close()
