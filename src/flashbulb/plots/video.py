"""One episode as an animated GIF: MuJoCo's 3D view where there is GL, from above where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.hazard_field import HazardField
from flashbulb.envs.navigation import Navigation, render, render3d
from flashbulb.envs.navigation.render import Scene, take_scene
from flashbulb.envs.simulator import FULL_PHYSICS
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import UsageError

FRAMES = 125  # at most; longer episodes are shown every few steps
FPS = 20
WIDTH, HEIGHT = 480, 360

Shot = Callable[[float], None]  # takes a frame, given the cost since the one before


def save_video(policy: TrainedPolicy, path: Path, deterministic: bool) -> str:
    """Play the first evaluation episode and film it; returns which view it shows."""
    check_path(path)
    env = evaluation_env(policy, 1)
    task: Any = env.env if isinstance(env, BudgetWrapper) else env
    try:
        renderer = _renderer(task)
        if renderer is not None:
            with renderer:
                frames: list[Any] = []
                _film(env, policy, deterministic, lambda cost: frames.append(_view3d(renderer, task)))
            _save_gif(path, frames)
            return "3D"
        _refuse_without_gl(task)
        scenes: list[Scene] = []
        _film(env, policy, deterministic, lambda cost: scenes.append(scene_of(task, cost)))
        render.save_animation(path, scenes, fps=FPS)
        return "top-down"
    finally:
        env.close()


def check_path(path: Path) -> None:
    """Before an evaluation that takes minutes, not after it."""
    if path.suffix.lower() != ".gif":
        raise UsageError(f"video: {str(path)!r} is not allowed; it must be the name of a .gif file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"video: {str(path)!r} is not allowed; its directory does not exist.")


def _film(env: CostVectorEnv, policy: TrainedPolicy, deterministic: bool, shot: Shot) -> None:
    """One episode; the last step is left out, for after it the next episode has already begun."""
    policy.rng = np.random.default_rng([evaluation_seed(policy.config.seed), 3])
    obs, _ = env.reset(seed=evaluation_seed(policy.config.seed))
    every = -(-env.max_episode_steps // FRAMES)
    shot(0.0)
    since = 0.0
    for step in range(1, env.max_episode_steps + 1):
        obs, _, cost, terminated, truncated, _ = env.step(policy.predict(obs, deterministic))
        since += float(cost[0])
        if terminated[0] or truncated[0]:
            return
        if step % every == 0:
            shot(since)
            since = 0.0


def scene_of(task: Any, cost: float, member: int = 0) -> Scene:
    """A member from above."""
    if isinstance(task, Navigation):
        return take_scene(task, member, cost)
    layout = {name: rows[0] for name, rows in task.layout(np.array([member])).items()}
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
        with warnings.catch_warnings(action="ignore"):  # GLFW's, of a display that is not there
            return mujoco.Renderer(model, HEIGHT, WIDTH)
    except Exception:  # which one depends on the backend that is missing
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
