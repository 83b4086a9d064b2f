"""Views of our own tasks: from above, and MuJoCo's 3D view where there is OpenGL."""

from __future__ import annotations

import warnings
from typing import Any

import mujoco
import numpy as np

from flashbulb.envs.hazard_field import HazardField
from flashbulb.envs.navigation import Navigation, render, render3d
from flashbulb.envs.navigation.render import Scene, take_scene
from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import UsageError

WIDTH, HEIGHT = 480, 360


def scene_of(task: Any, cost: float, env_index: int = 0) -> Scene:
    """One environment of a task seen from above."""
    if isinstance(task, Navigation):
        return take_scene(task, env_index, cost)
    layout = {name: rows[0] for name, rows in task.layout(np.array([env_index])).items()}
    nothing = np.zeros((0, 3))
    return Scene(
        title=task.env_id,
        robot="Point",
        agent=np.array([*layout["position"], layout["heading"]]),
        goal=layout["goal"],
        hazards=np.c_[layout["hazards"], np.zeros(len(layout["hazards"]))],
        vases=nothing,
        buttons=nothing,
        gremlins=nothing,
        paths=nothing,
        boundary=(np.inf, np.inf),
        has_circle=False,
        blind=False,
        cost=cost,
    )


def renderer_of(task: Any) -> Any:
    """MuJoCo's renderer, or None where the task has no 3D view or the machine no GL."""
    if not isinstance(task, Navigation | VelocityTask):
        return None
    model = task.model if isinstance(task, Navigation) else task.physics.model
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, WIDTH)
    model.vis.global_.offheight = max(model.vis.global_.offheight, HEIGHT)
    try:
        with warnings.catch_warnings(action="ignore"):  # GLFW warns where there is no display
            return mujoco.Renderer(model, HEIGHT, WIDTH)
    except Exception:  # its type depends on the missing backend
        return None


def view3d(renderer: Any, task: Navigation | VelocityTask) -> np.ndarray:
    """The first environment in 3D, (height, width, 3)."""
    if isinstance(task, Navigation):
        renderer.update_scene(render3d.data_of(task, 0), render3d.view())
        render3d.decorate(renderer.scene, task, 0)
        pixels: np.ndarray = renderer.render()
        return pixels
    model = task.physics.model
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, task.physics.state[0], FULL_PHYSICS)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance, camera.azimuth, camera.elevation = data.subtree_com[0], 4.5, 90, -15
    renderer.update_scene(data, camera)
    pixels = renderer.render()
    return pixels


def view_from_above(task: Any, size: float = 4.8) -> np.ndarray:
    """The first environment from above, (height, width, 3); drawn without OpenGL."""
    figure = render.picture([scene_of(task, 0.0)], size=size)
    canvas: Any = figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def rgb_array(task: Any, renderer: Any) -> np.ndarray:
    """A picture of the first environment for Gymnasium's `render`: 3D, or from above where there is no renderer."""
    if renderer is not None:
        return view3d(renderer, task)
    if not isinstance(task, Navigation | HazardField):
        raise UsageError(
            f"render_mode: {task.env_id} is only shown in 3D, and there is no OpenGL here; set MUJOCO_GL to egl or "
            "osmesa on a machine that has it."
        )
    return view_from_above(task)
