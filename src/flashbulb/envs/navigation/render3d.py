"""MuJoCo's 3D view of one environment, with the objects that have no physics drawn in.

Needs OpenGL through EGL or OSMesa (set `MUJOCO_GL` before Python starts).
"""

from __future__ import annotations

import mujoco
import numpy as np

from flashbulb.envs.navigation.env import Navigation
from flashbulb.envs.navigation.mujoco_physics import fill_controls
from flashbulb.envs.navigation.tasks import CIRCLE_RADIUS, GOAL_RADIUS, HAZARD_RADIUS, Aim
from flashbulb.errors import UsageError

_CYLINDER, _BOX = mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_BOX
GREEN, BLUE, RED = (0.16, 0.62, 0.36, 0.35), (0.29, 0.44, 0.89, 0.45), (0.76, 0.07, 0.12, 0.25)
_WALL_HALF = (0.05, 3.5, 0.3)


def picture3d(env: Navigation, index: int = 0, width: int = 640, height: int = 480) -> np.ndarray:
    """Environment `index` seen from above at an angle, as an RGB array (height, width, 3)."""
    env.model.vis.global_.offwidth = max(env.model.vis.global_.offwidth, width)
    env.model.vis.global_.offheight = max(env.model.vis.global_.offheight, height)
    try:
        renderer = mujoco.Renderer(env.model, height, width)
    except Exception as error:  # its class depends on the missing backend
        raise UsageError(
            "render3d: there is no OpenGL here; set MUJOCO_GL to egl or osmesa on a machine that has it, "
            "or use the top-down pictures of flashbulb.envs.navigation.render, which need none."
        ) from error
    with renderer:
        renderer.update_scene(data_of(env, index), view())
        decorate(renderer.scene, env, index)
        return renderer.render().copy()


def view() -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance, camera.azimuth, camera.elevation = [0, 0, 0], 5.5, 90, -50
    return camera


def data_of(env: Navigation, index: int) -> mujoco.MjData:
    """The state of environment `index` as simulator data."""
    data = mujoco.MjData(env.model)
    mujoco.mj_setState(env.model, data, env.state.physics[index], int(mujoco.mjtState.mjSTATE_FULLPHYSICS))
    control = np.zeros((1, 1, 2 + 7 * env.model.nmocap))
    fill_controls(env.state, env.rules, np.array([index]), np.zeros((1, 2)), control)
    places = control[0, 0, 2:]
    data.mocap_pos = places[: 3 * env.model.nmocap].reshape(-1, 3)
    data.mocap_quat = places[3 * env.model.nmocap :].reshape(-1, 4)
    mujoco.mj_forward(env.model, data)
    return data


def decorate(scene: mujoco.MjvScene, env: Navigation, index: int) -> None:
    """Append goal, hazards, circle and boundary to a scene."""
    objects, rules = env.state.objects[index], env.rules
    for x, y, _ in objects[slice(*rules.hazards)]:
        _append(scene, _CYLINDER, (HAZARD_RADIUS, HAZARD_RADIUS, 0.01), (x, y, 0.02), BLUE)
    if rules.goal >= 0:
        radius, height = (0.2, 0.1) if env.level.aim is Aim.BUTTON else (GOAL_RADIUS, 0.15)
        x, y = objects[rules.goal, :2]
        _append(scene, _CYLINDER, (radius, radius, height), (x, y, height + 0.01), GREEN)
    if env.level.aim is Aim.CIRCLE:
        _append(scene, _CYLINDER, (CIRCLE_RADIUS, CIRCLE_RADIUS, 0.01), (0, 0, 0.01), GREEN)
    for axis, limit in enumerate(env.level.boundary):
        if np.isfinite(limit):
            half = _WALL_HALF if axis == 0 else (_WALL_HALF[1], _WALL_HALF[0], _WALL_HALF[2])
            for side in (-limit, limit):
                _append(scene, _BOX, half, (side, 0, 0.25) if axis == 0 else (0, side, 0.25), RED)


def _append(
    scene: mujoco.MjvScene,
    kind: mujoco.mjtGeom,
    size: tuple[float, ...],
    pos: tuple[float, ...],
    colour: tuple[float, ...],
) -> None:
    if scene.ngeom >= scene.maxgeom:
        raise UsageError(f"render3d: a scene of {scene.maxgeom} geoms is full; it must have room for the objects.")
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(
        geom, kind, np.array(size), np.array(pos, dtype=float), np.eye(3).ravel(), np.array(colour, dtype=np.float32)
    )
    scene.ngeom += 1
