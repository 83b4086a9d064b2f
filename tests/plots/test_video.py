"""Films of an episode: from above without GL, MuJoCo's 3D view with it, a sentence where there is neither."""

import mujoco
import numpy as np
import pytest
from PIL import Image

import flashbulb
from flashbulb.envs import make
from flashbulb.envs.navigation import render
from flashbulb.envs.task_views import scene_of
from flashbulb.errors import UsageError
from flashbulb.plots import video
from tests.training.small_run import made_run


@pytest.fixture
def no_gl(monkeypatch):
    def refuse(*_):
        raise RuntimeError("no OpenGL")

    monkeypatch.setattr(mujoco, "Renderer", refuse)
    monkeypatch.setattr(video, "FRAMES", 8)


class SoftRenderer:
    """MuJoCo's renderer without its GL half: scenes are real, pixels tell how many things are in them."""

    def __init__(self, model, height, width):
        self.model, self.size, self.scene = model, (height, width, 3), mujoco.MjvScene(model, 1000)
        self.counts = []

    def update_scene(self, data, camera):
        option, everything = mujoco.MjvOption(), mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, data, option, None, camera, everything, self.scene)

    def render(self):
        self.counts.append(self.scene.ngeom)
        return np.full(self.size, len(self.counts), np.uint8)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def frames(path):
    with Image.open(path) as image:
        return image.n_frames


@pytest.mark.parametrize("env", ["HazardField-v0", "SafetyPointGoal1-v0"])
def test_from_above_without_gl(env, no_gl, tmp_path):
    policy = flashbulb.load_policy(made_run(tmp_path, "r", "cpo", env))
    assert video.save_video(policy, tmp_path / "a.gif", deterministic=True) == "top-down"
    assert frames(tmp_path / "a.gif") == 8  # the start and every 125th of 1000 steps, but for the last


def test_an_algorithm_with_a_budget_is_filmed_as_well(no_gl, tmp_path):
    policy = flashbulb.load_policy(made_run(tmp_path, "r", "saute", "HazardField-v0"))
    assert video.save_video(policy, tmp_path / "a.gif", deterministic=False) == "top-down"


def test_a_velocity_task_without_gl_is_a_sentence(no_gl, tmp_path):
    policy = flashbulb.load_policy(made_run(tmp_path, "r", "cpo", "SafetyHopperVelocity-v1"))
    with pytest.raises(UsageError, match="only shown in 3D"):
        video.save_video(policy, tmp_path / "a.gif", deterministic=True)


def test_a_task_of_a_user_is_a_sentence(no_gl, tmp_path):
    source = "tests.envs.gym_examples:make_six"
    policy = flashbulb.load_policy(made_run(tmp_path, "r", "cpo", source), env=source)
    with pytest.raises(UsageError, match="RecordVideo"):
        video.save_video(policy, tmp_path / "a.gif", deterministic=True)


@pytest.mark.parametrize("env", ["SafetyCarCircle1-v0", "SafetyHopperVelocity-v1"])
def test_in_3d_where_there_is_gl(env, tmp_path, monkeypatch):
    renderers = []
    monkeypatch.setattr(mujoco, "Renderer", lambda *args: renderers.append(SoftRenderer(*args)) or renderers[-1])
    monkeypatch.setattr(video, "FRAMES", 100)
    policy = flashbulb.load_policy(made_run(tmp_path, "r", "cpo", env))
    assert video.save_video(policy, tmp_path / "a.gif", deterministic=True) == "3D"
    counts = renderers[0].counts
    assert frames(tmp_path / "a.gif") == len(counts) >= 2
    assert min(counts) > 3


def test_the_hazard_field_is_drawn_where_it_is():
    env = make("HazardField-v0", 1, seed=3)
    env.reset()
    scene, state = scene_of(env, 1.0), env.get_state()
    np.testing.assert_array_equal(scene.agent, [*state["position"][0], state["heading"][0]])
    np.testing.assert_array_equal(scene.hazards[:, :2], state["hazards"][0])
    np.testing.assert_array_equal(scene.goal, state["goal"][0])
    assert render.picture([scene]).axes
