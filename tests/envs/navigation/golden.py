"""Traces of the original (Safety-Gymnasium, MuJoCo 2.3.3) in the coordinates of our shared model."""

from functools import cache
from pathlib import Path

import numpy as np

from flashbulb.envs.navigation import Navigation

TASKS = tuple(f"Safety{robot}{aim}1-v0" for robot in ("Point", "Car") for aim in ("Goal", "Circle", "Button"))
# Recorded by us in the same way, with 3 seeds of 100 steps instead of 5 of 200.
OTHER_LEVELS = tuple(task.replace("1-v0", f"{level}-v0") for task in TASKS for level in (0, 2))
_FOLDER = Path(__file__).parents[2] / "data" / "golden"


@cache
def trace(env_id: str) -> dict[str, np.ndarray]:
    with np.load(_FOLDER / f"{env_id}.npz") as archive:
        return {name: archive[name] for name in archive.files}


@cache
def physics(env_id: str) -> np.ndarray:
    """(seeds, steps + 1, 1 + nq + nv). The original's Point counts x, y and yaw from its initial pose."""
    z = trace(env_id)
    qpos, qvel = z["frame_qpos"].copy(), z["frame_qvel"].copy()
    if "Point" in env_id:
        yaw = z["static_agent_rot0"][:, None]
        qpos[..., :2] = z["frame_agent_pos"][..., :2]
        qpos[..., 2] += yaw
        c, s = np.cos(yaw), np.sin(yaw)
        u, v = z["frame_qvel"][..., 0], z["frame_qvel"][..., 1]
        qvel[..., 0], qvel[..., 1] = c * u - s * v, s * u + c * v
    return np.concatenate([z["frame_time"][..., None], qpos, qvel], axis=-1)


def all_frames(env_id: str) -> tuple[Navigation, np.ndarray, np.ndarray]:
    """A batch with one environment for every recorded step, in the state before it; its actions, and the physics after
    the step in the original. Environments are ordered by seed, then by step."""
    z, rows = trace(env_id), physics(env_id)
    seeds, steps = z["reward"].shape
    start = Navigation(env_id, seeds, seed=0, threads=1)
    start.reset(seed=0)
    state = {name: np.repeat(array, steps, axis=0) for name, array in start.get_state().items()}
    state["physics"] = rows[:, :-1].reshape(seeds * steps, -1)
    if "frame_goal_pos" in z:
        state["objects"][:, start.rules.goal, :2] = z["frame_goal_pos"][:, :-1, :2].reshape(-1, 2)
        state["last_distance"] = z["frame_last_dist_goal"][:, :-1].ravel()
    if "frame_goal_button" in z:
        state["button"] = z["frame_goal_button"][:, :-1].ravel()
        state["timer"] = z["frame_button_timer"][:, :-1].ravel()
    env = Navigation(env_id, seeds * steps, seed=0, threads=2)
    env.set_state(state)
    return env, z["action"].reshape(-1, 2), rows[:, 1:].reshape(seeds * steps, -1)
