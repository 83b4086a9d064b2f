"""Pictures show what is there: by pixel colour from above, by geom count in 3D."""

import io

import mujoco
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from flashbulb.envs.navigation import Navigation, render, render3d
from flashbulb.envs.navigation.render import take_scene
from flashbulb.errors import UsageError
from tests.envs.navigation.golden import TASKS


def _pixels(figure) -> np.ndarray:
    stream = io.BytesIO()
    figure.savefig(stream, dpi=60)
    return np.asarray(Image.open(stream).convert("RGB")) / 255.0


def _at(figure, pixels, x, y):
    """The colour of the picture at a place in metres."""
    column, row = figure.axes[0].transData.transform((x, y)) * 60 / figure.dpi
    return pixels[len(pixels) - 1 - int(row), int(column)]


@pytest.mark.parametrize("env_id", TASKS)
def test_every_task_can_be_drawn(env_id, tmp_path):
    env = Navigation(env_id, 2, seed=0, threads=1)
    env.reset()
    scenes = [take_scene(env, 1)]
    for _ in range(3):
        cost = env.step(np.ones((2, 2)))[2]
        scenes.append(take_scene(env, 1, cost[1]))
    render.save_picture(tmp_path / "p.png", scenes, memory=np.zeros((3, 2)), heat=np.eye(8), dpi=40)
    assert Image.open(tmp_path / "p.png").size[0] > 100
    names = {text.get_text() for text in render.picture(scenes).legends[0].get_texts()}
    expected = {"Goal": {"goal", "hazard", "vase"}, "Circle": {"circle"}, "Button": {"goal", "button", "gremlin"}}
    assert names >= next(v for k, v in expected.items() if k in env_id) | {"robot"}


def test_things_are_drawn_where_they_are():
    env = Navigation("SafetyPointGoal1-v0", 1, seed=0, threads=1)
    env.reset()
    hazards = np.array([[-1.2, 0.3 * k - 1.0] for k in range(8)])
    env.set_layout({"agent": [0.0, 0.0, np.pi / 2], "goal": [1.0, 1.0], "vases": [1.0, -1.0, 0.3], "hazards": hazards})
    figure = render.picture([take_scene(env)])
    pixels = _pixels(figure)
    for place, colour in (((0, 0), render.ROBOT), ((0, 0.13), render.ROBOT), ((1.0, -1.0), render.VASE)):
        np.testing.assert_allclose(_at(figure, pixels, *place), to_rgb(colour), atol=0.03)
    np.testing.assert_allclose(_at(figure, pixels, 0.03, -0.17), to_rgb(render.FLOOR), atol=0.03)  # behind it
    green = _at(figure, pixels, 1.05, 1.05)
    assert green[1] > green[0]
    blue = _at(figure, pixels, -1.22, -0.72)
    assert blue[2] > blue[0] + 0.1


def test_animation_has_a_frame_per_scene(tmp_path):
    env = Navigation("SafetyCarButton1-v0", 1, seed=0, threads=1)
    env.reset()
    scenes = [take_scene(env)]
    for _ in range(3):
        env.step(np.ones((1, 2)))
        scenes.append(take_scene(env))
    render.save_animation(tmp_path / "a.gif", scenes, dpi=40)
    assert Image.open(tmp_path / "a.gif").n_frames == 4


def test_nothing_cannot_be_drawn():
    with pytest.raises(UsageError, match="scenes"):
        render.picture([])


@pytest.mark.parametrize(("env_id", "extra"), [("PointGoal1", 9), ("CarCircle1", 3), ("PointButton1", 5)])
def test_3d_scene_contains_what_has_no_physics(env_id, extra):
    """Filling a scene needs no GL; only turning it into pixels does."""
    env = Navigation(f"Safety{env_id}-v0", 1, seed=0, threads=1)
    env.reset()
    data = render3d.data_of(env, 0)
    np.testing.assert_allclose(data.body("agent").xpos[:2], env.state.objects[0, 0, :2])
    scene = mujoco.MjvScene(env.model, maxgeom=100)
    mujoco.mjv_updateScene(
        env.model, data, mujoco.MjvOption(), None, render3d.view(), mujoco.mjtCatBit.mjCAT_ALL, scene
    )
    before = scene.ngeom
    render3d.decorate(scene, env, 0)
    assert scene.ngeom == before + extra
    if env.rules.goal >= 0:
        places = np.array([scene.geoms[k].pos[:2] for k in range(before, scene.ngeom)])
        assert (np.abs(places - env.state.objects[0, env.rules.goal, :2]).max(1) < 1e-6).any()


def test_3d_picture_or_a_sentence(monkeypatch):
    env = Navigation("SafetyPointGoal1-v0", 1, seed=0, threads=1)
    env.reset()

    def no_gl(*_):
        raise RuntimeError("no display")

    monkeypatch.setattr(mujoco, "Renderer", no_gl)
    with pytest.raises(UsageError, match="there is no OpenGL here"):
        render3d.picture3d(env)
