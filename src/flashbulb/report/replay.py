"""Evaluation episodes, played again and recorded: the same that `flashbulb evaluate --stochastic` counts."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed
from flashbulb.analysis.memory_snapshots import read_snapshot
from flashbulb.analysis.trained_policy import TrainedPolicy, newest_arrays
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.registry import env_ids
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import RunError, UsageError
from flashbulb.report.memory_map_data import Fears
from flashbulb.report.packing import floats
from flashbulb.report.run_groups import Subject
from flashbulb.report.side_view import FromBeside
from flashbulb.report.top_view import FromAbove
from flashbulb.storage.run_directory import load_spaces


class Camera(Protocol):
    """Looks at one member of a task, and says what it saw as plain data."""

    def look(self) -> None: ...

    def stay(self) -> None:
        """The step that ends an episode leaves nothing to look at: the next one has already begun."""

    def film(self) -> dict[str, Any]: ...


class Episode(NamedTuple):
    rewards: list[float]
    costs: list[float]
    camera: Camera


def replay(label: str, runs: list[Subject], episodes: int) -> dict[str, Any]:
    """Episodes of the first seed that has any to show; if none has, why not."""
    reasons = []
    for run in runs:
        about = {"label": label, "run": run.path.name, "seed": run.config.seed}
        try:
            steps, played = _replay(run, episodes)
        except (UsageError, RunError, OSError) as error:
            reasons.append({**about, "why": " ".join(str(error).split())})
            continue
        return {**about, "steps": steps, "limit": run.config.cost_limit, "episodes": played}
    return reasons[0]


def _replay(run: Subject, episodes: int) -> tuple[int, list[dict[str, Any]]]:
    if run.config.env not in env_ids():
        raise UsageError(f"{run.config.env} is not one of Flashbulb's own tasks, so there is no picture of it.")
    arrays = newest_arrays(run.path)
    policy = TrainedPolicy(arrays, load_spaces(run.path), run.config)
    env = evaluation_env(policy, episodes)
    task: Any = env.env if isinstance(env, BudgetWrapper) else env
    beside = isinstance(task, VelocityTask)
    try:
        cameras: list[Any] = [FromBeside(task, i) if beside else FromAbove(task, i) for i in range(episodes)]
        played = play(env, policy, cameras)
    finally:
        env.close()
    films = [_plain(episode) for episode in played]
    kept = read_snapshot(arrays, int(arrays["totals/iterations"]))
    if kept.memory.size and not beside:
        with Fears(run.config, kept) as fears:
            for film, camera in zip(films, cameras, strict=True):
                film["maps"] = fears.maps(camera.moments)
    return policy.steps, films


def play(env: CostVectorEnv, policy: TrainedPolicy, cameras: list[Any]) -> list[Episode]:
    """The first episode of every member, with the seeds and the noise of `run.evaluate.play`."""
    seed = evaluation_seed(policy.config.seed)
    policy.rng = np.random.default_rng([seed, 2])
    played = [Episode([], [], camera) for camera in cameras]
    obs, _ = env.reset(seed=seed)
    for camera in cameras:
        camera.look()
    running = np.ones(env.num_envs, bool)
    while running.any():
        obs, reward, cost, terminated, truncated, _ = env.step(policy.predict(obs, deterministic=False))
        ended = terminated | truncated
        for i in np.flatnonzero(running):
            played[i].rewards.append(float(reward[i]))
            played[i].costs.append(float(cost[i]))
            played[i].camera.stay() if ended[i] else played[i].camera.look()
        running &= ~ended
    return played


def _plain(episode: Episode) -> dict[str, Any]:
    """Frame t is what there is after t steps; a cost event is at the frame that its step led to."""
    costly = np.flatnonzero(episode.costs)
    return {
        "length": len(episode.rewards),
        "return": floats(np.cumsum([0.0, *episode.rewards])),
        "costs": [[int(t) + 1, float(f"{episode.costs[t]:.6g}")] for t in costly],
        **episode.camera.film(),
    }
