"""Recorded evaluation episodes, as `flashbulb evaluate --stochastic` runs them, with maps of the intrinsic cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.analysis.evaluation import evaluation_env, evaluation_seed
from flashbulb.analysis.intrinsic_map import intrinsic_cost_map, map_env, observe_layout, remembered_positions
from flashbulb.analysis.memory_snapshots import MemorySnapshot, read_snapshot
from flashbulb.analysis.rollout import rollout
from flashbulb.analysis.trained_policy import TrainedPolicy, newest_arrays
from flashbulb.config import Config
from flashbulb.cost_limits import CostLimit, relative_excess
from flashbulb.envs import CostVectorEnv, State
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.envs.named_costs import NamedCosts
from flashbulb.envs.registry import env_ids
from flashbulb.envs.velocity import VelocityTask
from flashbulb.errors import RunError, UsageError
from flashbulb.report.encoding import floats, points, quantised
from flashbulb.report.run_groups import ReportRun
from flashbulb.report.views import ArenaView, EpisodeView, RunnerView
from flashbulb.storage.run_directory import load_spaces

MAX_MAPS = 4  # per episode; each takes about a second


class RecordedEpisode(NamedTuple):
    rewards: list[float]
    costs: list[Any]  # a number, or several
    view: EpisodeView

    def data(self) -> dict[str, Any]:
        """Frame t is the state after t steps; the cost of a step belongs to the frame after it."""
        return {
            "length": len(self.rewards),
            "return": floats(np.cumsum([0.0, *self.rewards])),
            "costs": [[int(t) + 1, float(f"{self.costs[t]:.6g}")] for t in np.flatnonzero(self.costs)],
            **self.view.frames(),
        }


def replay(label: str, runs: list[ReportRun], episodes: int) -> dict[str, Any]:
    """Episodes of the first seed that can be replayed; if none can, the reason of the first."""
    failures = []
    for run in runs:
        about = {"label": label, "run": run.path.name, "seed": run.config.seed}
        try:
            steps, shown, recorded = _replay_run(run, episodes)
        except (UsageError, RunError, OSError) as error:
            failures.append({**about, "reason": " ".join(str(error).split())})
            continue
        return {**about, "steps": steps, **shown, "episodes": recorded}
    return failures[0]


def _replay_run(run: ReportRun, episodes: int) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Steps of training, the limit of the cost that is shown (with its name, if it has one), and the episodes."""
    if run.config.env not in env_ids():
        raise UsageError(f"{run.config.env} is not one of Flashbulb's own tasks, so it cannot be drawn.")
    arrays = newest_arrays(run.path)
    policy = TrainedPolicy(arrays, load_spaces(run.path), run.config)
    env = evaluation_env(policy, episodes)
    task: Any = env.env if isinstance(env, BudgetWrapper | NamedCosts) else env
    is_runner = isinstance(task, VelocityTask)
    try:
        views: list[Any] = [RunnerView(task, i) if is_runner else ArenaView(task, i) for i in range(episodes)]
        shown, found = _with_one_cost(record_episodes(env, policy, views), run.config.cost_limit)
        recorded = [episode.data() for episode in found]
    finally:
        env.close()
    snapshot = read_snapshot(arrays, int(arrays["totals/iterations"]), shown.get("cost_name", ""))
    if snapshot.memory.size and not is_runner:
        _add_maps(recorded, views, run.config, snapshot)
    return policy.steps, shown, recorded


def _with_one_cost(
    episodes: list[RecordedEpisode], cost_limit: CostLimit
) -> tuple[dict[str, Any], list[RecordedEpisode]]:
    """The limit, and the episodes with one cost: of several the one that leads in their mean, which is named."""
    if not isinstance(cost_limit, dict):
        return {"limit": cost_limit}, episodes
    names = list(cost_limit)
    totals = np.mean([np.sum(episode.costs, axis=0) for episode in episodes], axis=0)
    k = int(relative_excess(totals, np.array(list(cost_limit.values()))).argmax())
    shown = {"limit": cost_limit[names[k]], "cost_name": names[k]}
    return shown, [episode._replace(costs=[float(cost[k]) for cost in episode.costs]) for episode in episodes]


def record_episodes(env: CostVectorEnv, policy: TrainedPolicy, views: list[Any]) -> list[RecordedEpisode]:
    """Record the first episode of every environment, with the seeds and noise of `analysis.evaluation.run_episodes`."""
    seed = evaluation_seed(policy.config.seed)
    policy.rng = np.random.default_rng([seed, 2])
    episodes = [RecordedEpisode([], [], view) for view in views]
    obs, _ = env.reset(seed=seed)
    for view in views:
        view.record()
    running = np.ones(env.num_envs, bool)
    for step in rollout(env, lambda observations, _: policy.predict(observations, deterministic=False), obs):
        for i in np.flatnonzero(running):
            episodes[i].rewards.append(float(step.rewards[i]))
            episodes[i].costs.append(step.costs[i].copy())
            episodes[i].view.repeat() if step.ended[i] else episodes[i].view.record()
        running &= ~step.ended
        if not running.any():
            break
    return episodes


def _add_maps(recorded: list[dict[str, Any]], views: list[ArenaView], config: Config, snapshot: MemorySnapshot) -> None:
    """Add maps of the intrinsic cost. The goal is part of the observation, so every new goal needs a new map."""
    env = map_env(config.env, 0, config.env_kwargs)
    try:
        for episode, view in zip(recorded, views, strict=True):
            changes = view.goal_changes
            chosen = np.unique(np.linspace(0, len(changes) - 1, min(MAX_MAPS, len(changes))).round().astype(int))
            episode["maps"] = [_map(env, changes[int(k)], config, snapshot) for k in chosen]
    finally:
        env.close()


def _map(env: Any, goal_change: tuple[int, State], config: Config, snapshot: MemorySnapshot) -> dict[str, Any]:
    frame, state = goal_change
    env.set_state(state, np.array([0]))
    arena = observe_layout(env)
    heat = intrinsic_cost_map(arena, snapshot, config.memory, config.threads or 1)
    remembered = np.unique(remembered_positions(arena, snapshot), axis=0)
    return {"frame": frame, "heat": quantised(heat), "remembered": points(remembered)}
