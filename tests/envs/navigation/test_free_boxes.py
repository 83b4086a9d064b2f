"""Vases that were pushed over: still moved by no simulator once they lie still, and where MuJoCo has them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flashbulb.envs.navigation import Navigation
from flashbulb.envs.navigation.mujoco_physics import MujocoPhysics
from flashbulb.envs.navigation.task_state import TaskState

NUM_ENVS = 24


def _vases(env, rows):
    """Columns of position and quaternion of the vases, for all environments."""
    return [rows[:, column : column + 7] for _, column, _ in env.rules.free]


def _replace_simulator(env):
    """The list to which environments are added that would be simulated; they then stay where they are."""
    asked = []

    def advance(left, actions, meanwhile=None):
        asked.extend(left)
        if meanwhile:
            meanwhile()

    env.physics.simulator.advance = advance
    return asked


@pytest.mark.parametrize("robot", ["Point", "Car"])
def test_a_vase_on_any_face_rests_as_in_mujoco(robot):
    env = Navigation(f"Safety{robot}Goal2-v0", NUM_ENVS, seed=0, threads=2)
    env.reset()
    rng, indices = np.random.default_rng(0), np.arange(NUM_ENVS)
    faces, turned = Rotation.create_group("O").as_matrix(), set()
    for vase in _vases(env, env.state.physics):
        for i in indices:
            face = faces[rng.integers(len(faces))]
            turned.add(tuple(np.round(face[2]).astype(int)))
            turn = Rotation.from_euler("z", rng.uniform(-np.pi, np.pi)) * Rotation.from_matrix(face)
            vase[i, 3:] = turn.as_quat(scalar_first=True)
    assert len(turned) == 6  # every face was down somewhere
    still = np.zeros((NUM_ENVS, 2))
    for _ in range(60):
        env.physics.simulator.advance(indices, still)
    simulated = TaskState(**env.get_state())
    simulator = MujocoPhysics(env.model, env.rules, simulated, threads=2)
    asked = _replace_simulator(env)
    for _ in range(5):
        actions = rng.uniform(-0.1, 0.1, (NUM_ENVS, 2))
        env.step(actions)
        simulator.advance(indices, actions)
    moved = np.setdiff1d(indices, asked)
    assert len(moved) > 0.7 * NUM_ENVS  # the others are near a vase
    for ours, theirs in zip(_vases(env, env.state.physics), _vases(env, simulated.physics), strict=True):
        np.testing.assert_allclose(ours[moved], theirs[moved], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("axis", "angle"), [("x", 1e-6), ("y", np.pi / 2 - 1e-6), ("x", np.pi / 4)])
def test_a_vase_that_stands_on_an_edge_or_leans_is_left_to_the_simulator(axis, angle):
    env = Navigation("SafetyPointGoal2-v0", NUM_ENVS, seed=0, threads=1)
    env.reset()
    for _ in range(60):
        env.physics.simulator.advance(np.arange(NUM_ENVS), np.zeros((NUM_ENVS, 2)))
    _vases(env, env.state.physics)[0][:, 3:] = Rotation.from_euler(axis, angle).as_quat(scalar_first=True)
    asked = _replace_simulator(env)
    env.step(np.zeros((NUM_ENVS, 2)))
    assert sorted(asked) == list(range(NUM_ENVS))
