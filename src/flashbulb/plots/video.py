"""One episode as an animated GIF: MuJoCo's 3D view where there is OpenGL, otherwise a top-down view."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed
from flashbulb.analysis.intrinsic_map import scene_of
from flashbulb.analysis.rollout import rollout
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.hazard_field import HazardField
from flashbulb.envs.navigation import Navigation, render, render3d
from flashbulb.envs.navigation.render import Scene
from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import UsageError

FRAMES = 125  # at most; longer episodes are shown every few steps
FPS = 20
WIDTH, HEIGHT = 480, 360

TakeFrame = Callable[[float], None]  # gets the cost since the frame before


def save_video(policy: TrainedPolicy, path: Path, deterministic: bool) -> str:
    """Record the first evaluation episode; returns which view it shows."""
    check_video_path(path)
    env = evaluation_env(policy, 1)
    task: Any = env.env if isinstance(env, BudgetWrapper) else env
    try:
        renderer = _renderer(task)
        if renderer is not None:
            with renderer:
                frames: list[Any] = []
                _record(env, policy, deterministic, lambda cost: frames.append(_view3d(renderer, task)))
            _save_gif(path, frames)
            return "3D"
        _refuse_without_gl(task)
        scenes: list[Scene] = []
        _record(env, policy, deterministic, lambda cost: scenes.append(scene_of(task, cost)))
        render.save_animation(path, scenes, fps=FPS)
        return "top-down"
    finally:
        env.close()


def check_video_path(path: Path) -> None:
    """Refuse a wrong name before an evaluation that takes minutes."""
    if path.suffix.lower() != ".gif":
        raise UsageError(f"video: {str(path)!r} is not allowed; it must be the name of a .gif file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"video: {str(path)!r} is not allowed; its directory does not exist.")


def _record(env: CostVectorEnv, policy: TrainedPolicy, deterministic: bool, take_frame: TakeFrame) -> None:
    """Play one episode. There is no frame of its last step, after which the environment is already in the next one."""
    seed = evaluation_seed(policy.config.seed)
    policy.rng = np.random.default_rng([seed, 3])
    observations, _ = env.reset(seed=seed)
    every = -(-env.max_episode_steps // FRAMES)
    take_frame(0.0)
    cost = 0.0
    steps = env.max_episode_steps
    for step in rollout(env, lambda obs, _: policy.predict(obs, deterministic), observations, steps):
        cost += float(step.costs[0])
        if step.ended[0]:
            return
        if (step.t + 1) % every == 0:
            take_frame(cost)
            cost = 0.0


def _refuse_without_gl(task: Any) -> None:
    if isinstance(task, VelocityTask):
        raise UsageError(
            f"video: {task.env_id} is only shown in 3D, and there is no OpenGL here; set MUJOCO_GL to egl or osmesa on "
            "a machine that has it."
        )
    if not isinstance(task, Navigation | HazardField):
        raise UsageError(
            f"video: {task.env_id} is not one of Flashbulb's own tasks; film it with flashbulb.load_policy and "
            "gymnasium.wrappers.RecordVideo."
        )


def _renderer(task: Any) -> Any:
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


def _view3d(renderer: Any, task: Navigation | VelocityTask) -> Image.Image:
    if isinstance(task, Navigation):
        renderer.update_scene(render3d.data_of(task, 0), render3d.view())
        render3d.decorate(renderer.scene, task, 0)
        return Image.fromarray(renderer.render())
    model = task.physics.model
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, task.physics.state[0], FULL_PHYSICS)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance, camera.azimuth, camera.elevation = data.subtree_com[0], 4.5, 90, -15
    renderer.update_scene(data, camera)
    return Image.fromarray(renderer.render())


def _save_gif(path: Path, frames: list[Image.Image]) -> None:
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000 // FPS, loop=0)
