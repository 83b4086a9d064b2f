"""Flashbulb: safe reinforcement learning with a limit on the cost caused during training.

    import flashbulb

    result = flashbulb.train("mice-cpo", "SafetyPointGoal1-v0", steps=1_000_000, seed=0)
    env = flashbulb.make("SafetyPointGoal1-v0", num_envs=20)
    policy = flashbulb.load_policy(result.directory)
    observation, info = env.reset(seed=0)
    actions = policy.predict(observation)

This module is the public interface. It imports JAX, MuJoCo and Numba only when a function needs them. Importing it
registers the tasks with Gymnasium as `flashbulb/<id>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The function `report` below takes the name of the package `flashbulb.report`. Importing a package binds its name here,
# so it is imported first. `from flashbulb.report.page import ...` works as usual.
import flashbulb.report  # noqa: F401
from flashbulb.envs import CostVectorEnv, env_ids, make

if TYPE_CHECKING:
    from flashbulb.analysis.statistics import MeanInterval
    from flashbulb.analysis.trained_policy import TrainedPolicy
    from flashbulb.envs.env_checker import Findings
    from flashbulb.training.recorder import Result

__version__ = "0.1.0"
__all__ = [
    "CostVectorEnv",
    "__version__",
    "check",
    "env_ids",
    "evaluate",
    "load_policy",
    "make",
    "plot",
    "report",
    "resume",
    "train",
]


def train(
    algorithm: str,
    env: str,
    *,
    seed: int = 0,
    steps: int = 10_000_000,
    cost_limit: float = 25.0,
    num_envs: int = 20,
    **settings: Any,
) -> Result:
    """Train an algorithm on a task and return the run's directory, metrics and last row of metrics.

    Args:
        algorithm: A name that `flashbulb algorithms` lists, such as "mice-cpo", or a composition such as "mice-cup".
        env: A task of `env_ids()`, "module:function" for an environment of your own, or a Gymnasium id.
        seed: Seed of every random number of the run.
        steps: Environment steps of the whole run.
        cost_limit: Limit on the mean undiscounted cost of an episode.
        num_envs: Environments stepped as one batch.
        settings: Other fields of `flashbulb.config.Config`, such as `runs_dir`; fields of its parts are given as
            dictionaries, such as `memory={"neighbours": 5}`.
    """
    from flashbulb.algorithms.registry import configure
    from flashbulb.training.loop import train as train_config

    given = {"seed": seed, "steps": steps, "cost_limit": cost_limit, "num_envs": num_envs}
    return train_config(configure(algorithm, env, **given, **settings))


def resume(run: str | Path, *, threads: int | None = None, env: str | None = None) -> Result:
    """Continue an interrupted run to its end; the result is bit for bit that of an uninterrupted run.

    Args:
        run: The run's directory.
        threads: Threads to use (default: as the run was started); results do not depend on it.
        env: The run's environment, which must be named again if it is "module:function": it is code of your own.
    """
    from flashbulb.training.loop import resume as resume_run

    return resume_run(run, threads=threads, trusted_env=env)


def load_policy(run: str | Path, seed: int | None = None, env: str | None = None) -> TrainedPolicy:
    """Load the policy of a run; `load_policy(run).predict(observation)` returns an action.

    Args:
        run: A run's directory, for its newest checkpoint, or the path of a checkpoint.
        seed: Seed of the policy's own action samples, for `predict(observation, deterministic=False)`.
        env: The run's environment, for `evaluate`; it must be named again if it is "module:function".
    """
    from flashbulb.analysis.trained_policy import load_policy as load

    return load(run, seed, env)


def evaluate(
    run: str | Path | TrainedPolicy,
    episodes: int = 100,
    deterministic: bool | None = None,
    env: str | None = None,
) -> dict[str, dict[str, MeanInterval]]:
    """Play episodes on seeds that training never used; return means with bootstrap intervals, by mode and measure.

    For example `evaluate(run)["stochastic"]["cost"].mean`. The measures are return, cost, length and share_over_limit.

    Args:
        run: A run's directory, a checkpoint, or a loaded policy.
        episodes: Episodes in each mode.
        deterministic: Whether to take the most likely action; None measures both "deterministic" and "stochastic".
        env: The run's environment, which must be named again if it is "module:function": it is code of your own.
    """
    from flashbulb.analysis.evaluation import evaluate as evaluate_policy

    policy = load_policy(run, env=env) if isinstance(run, str | Path) else run
    modes = {None: ("deterministic", "stochastic"), True: ("deterministic",), False: ("stochastic",)}
    return evaluate_policy(policy, episodes, modes[deterministic])


def check(env: str, steps: int = 10_000) -> Findings:
    """Run an environment with random actions; return the `problems` that prevent training, and `notes`.

    Args:
        env: "module:function" that makes the environment, or an id that Gymnasium knows.
        steps: Maximum number of steps; it stops earlier once three episodes have ended.
    """
    from flashbulb.envs.env_checker import check as check_env
    from flashbulb.envs.registry import single

    return check_env(single(env), steps)


def plot(runs: Sequence[str | Path], output: str | Path = "curves.png") -> Path:
    """Draw the learning curves of runs, seeds as mean and confidence band, and return the path of the figure.

    Args:
        runs: Directories of runs.
        output: File to write; its suffix decides the format (png, pdf, svg).
    """
    from flashbulb.plots.learning_curves import draw_comparison

    draw_comparison([Path(run) for run in runs], Path(output))
    return Path(output)


def report(
    runs: Sequence[str | Path], output: str | Path = "report.html", episodes: int = 2, title: str | None = None
) -> Path:
    """Write one self-contained HTML page about studies or runs, and return its path.

    Args:
        runs: Directories of studies or runs.
        output: File to write.
        episodes: Episodes to record for each task and algorithm (0: none).
        title: Title of the page (default: the study's name, or the algorithms and tasks).
    """
    from flashbulb.report.page import write_report

    write_report([Path(run) for run in runs], Path(output), episodes, title)
    return Path(output)
