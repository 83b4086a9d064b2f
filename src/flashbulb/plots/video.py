"""One episode as an animated GIF: MuJoCo's 3D view where there is OpenGL, otherwise a top-down view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed
from flashbulb.analysis.rollout import rollout
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.hazard_field import HazardField
from flashbulb.envs.named_costs import NamedCosts
from flashbulb.envs.navigation import Navigation, render
from flashbulb.envs.navigation.render import Scene
from flashbulb.envs.task_views import renderer_of, scene_of, view3d
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import UsageError

FRAMES = 125  # at most; longer episodes are shown every few steps
FPS = 20

TakeFrame = Callable[[float], None]  # gets the cost since the frame before


def save_video(policy: TrainedPolicy, path: Path, deterministic: bool) -> str:
    """Record the first evaluation episode; returns which view it shows."""
    check_video_path(path)
    env = evaluation_env(policy, 1)
    task: Any = env.env if isinstance(env, BudgetWrapper | NamedCosts) else env
    try:
        renderer = renderer_of(task)
        if renderer is not None:
            with renderer:
                frames: list[Any] = []
                _record(env, policy, deterministic, lambda cost: frames.append(Image.fromarray(view3d(renderer, task))))
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
        cost += float(np.sum(step.costs[0]))
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


def _save_gif(path: Path, frames: list[Image.Image]) -> None:
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000 // FPS, loop=0)
