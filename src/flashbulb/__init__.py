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

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The function `report` below takes the name of the package `flashbulb.report`. Importing a package binds its name here,
# so it is imported first. `from flashbulb.report.page import ...` works as usual.
import flashbulb.report  # noqa: F401
from flashbulb.envs import CostVectorEnv, env_ids, make, register_env
from flashbulb.envs.env_objects import EnvLike, name_env

if TYPE_CHECKING:
    from rich.console import Console

    from flashbulb.algorithms.registry import Algorithm
    from flashbulb.analysis.statistics import MeanInterval
    from flashbulb.analysis.trained_policy import TrainedPolicy
    from flashbulb.config import Config
    from flashbulb.envs.env_checker import Findings
    from flashbulb.memory import CostStream
    from flashbulb.training.callbacks import Callback
    from flashbulb.training.recorder import Result

JsonValue = str | int | float | bool | None | list[Any] | dict[str, Any]
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
    "register_algorithm",
    "register_cost_stream",
    "register_env",
    "report",
    "resume",
    "train",
]


def train(
    algorithm: str,
    env: EnvLike,
    *,
    seed: int = 0,
    steps: int = 10_000_000,
    cost_limit: float | Mapping[str, float] = 25.0,
    num_envs: int | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = True,
    **settings: Any,
) -> Result:
    """Train an algorithm on a task and return the run's directory, metrics and last row of metrics.

    Args:
        algorithm: A name that `flashbulb algorithms` lists, such as "mice-cpo", or a composition such as "mice-cup".
        env: A task of `env_ids()`, a Gymnasium id, or an environment of your own: its class, a function that makes it
            or the name of one as "module:function", an instance, or a batch (`CostVectorEnv`). What other processes
            cannot import, such as a class of a notebook, runs in this one. The field `env_kwargs` has its arguments.
        seed: Seed of every random number of the run.
        steps: Environment steps of the whole run.
        cost_limit: Limit on the mean undiscounted cost of an episode; for several costs, the limit of each by its name,
            such as `{"hazards": 25, "vases": 5}`.
        num_envs: Environments stepped as one batch (default: the algorithm's, 20 or 100).
        callbacks: Objects that are called after every iteration; `flashbulb.training.callbacks` has three.
        verbose: Whether to print the progress and the result.
        settings: Other fields of `flashbulb.config.Config`, such as `runs_dir`; fields of its parts are given as
            dictionaries, such as `memory={"neighbours": 5}`.
    """
    from flashbulb.algorithms.registry import configure, get_algorithm
    from flashbulb.errors import UsageError
    from flashbulb.training.loop import train as train_config

    unused = sorted(set(settings) & get_algorithm(algorithm).unused_settings)
    if unused:
        raise UsageError(f"{unused[0]}: {algorithm} does not use it; leave it out.")

    limit = dict(cost_limit) if isinstance(cost_limit, Mapping) else cost_limit
    given: dict[str, Any] = {"seed": seed, "steps": steps, "cost_limit": limit}
    if num_envs is not None:
        given["num_envs"] = num_envs
    batch = env if not isinstance(env, type) and isinstance(env, CostVectorEnv) else None
    if batch is not None:
        given["num_envs"] = batch.num_envs
    config = configure(algorithm, batch.env_id if batch else name_env(env), **given, **settings)
    return train_config(config, _console(verbose), batch, callbacks)


def _console(verbose: bool) -> Console:
    from rich.console import Console

    return Console(quiet=not verbose)


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    env: EnvLike | None = None,
    threads: int | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = True,
) -> Result:
    """Continue an interrupted run to its end; the result is bit for bit that of an uninterrupted run.

    Args:
        run: The run's directory.
        steps: Steps of the whole run, more than it was started for, to make it longer (default: as it was started).
        env: The environment, if `train` was given an object that other processes cannot import, or a batch.
        threads: Threads to use (default: as the run was started); results do not depend on it.
        callbacks: Those that `train` was given.
        verbose: Whether to print the progress and the result.
    """
    from flashbulb.training.loop import resume as resume_run

    batch = env if not isinstance(env, type) and isinstance(env, CostVectorEnv) else None
    named = None if env is None or batch is not None else name_env(env)
    return resume_run(run, _console(verbose), batch, threads, callbacks, steps, trusted_env=named)


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
    env: EnvLike | None = None,
    env_kwargs: Mapping[str, JsonValue] | None = None,
) -> dict[str, dict[str, MeanInterval]]:
    """Play episodes on seeds that training never used; return means with bootstrap intervals, by mode and measure.

    For example `evaluate(run)["stochastic"]["cost"].mean`. The measures are return, cost, length and share_over_limit,
    and of each of several costs cost_NAME and share_over_limit_NAME.

    Args:
        run: A run's directory, a checkpoint, or a loaded policy.
        episodes: Episodes in each mode.
        deterministic: Whether to take the most likely action; None measures both "deterministic" and "stochastic".
        env: Another environment than that of training, or the same one; it must be given again if it is an object or
            "module:function", because it is code of your own.
        env_kwargs: Its arguments (default: those of training).
    """
    from flashbulb.analysis.evaluation import evaluate as evaluate_policy

    policy = load_policy(run) if isinstance(run, str | Path) else run
    named = None if env is None else name_env(env)
    policy = policy.on(named, None if env_kwargs is None else dict(env_kwargs))
    policy.trusted_env = named or policy.trusted_env
    modes = {None: ("deterministic", "stochastic"), True: ("deterministic",), False: ("stochastic",)}
    return evaluate_policy(policy, episodes, modes[deterministic])


def check(env: EnvLike, steps: int = 10_000, env_kwargs: Mapping[str, JsonValue] | None = None) -> Findings:
    """Run an environment with random actions; return the `problems` that prevent training, and `notes`.

    Args:
        env: A class, a function that makes the environment, its name as "module:function", an instance, or an id.
        steps: Maximum number of steps; it stops earlier once three episodes have ended.
        env_kwargs: Arguments of what makes it.
    """
    from flashbulb.envs.env_checker import check as check_env
    from flashbulb.envs.registry import single

    return check_env(single(name_env(env)), steps, env_kwargs)


def plot(runs: Sequence[str | Path], output: str | Path = "curves.png") -> Path:
    """Draw the learning curves of runs, seeds as interquartile mean and interval, and return the path of the figure.

    A run that is damaged, or that repeats another with the same seed, is left out, and named on stderr.

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


def register_algorithm(name: str, algorithm: Algorithm) -> None:
    """Make an algorithm known under a name: `train`, `resume`, `mice-NAME` and every command then know it.

    Args:
        name: Lower-case words with hyphens. A module may register its own name again, which replaces the algorithm.
        algorithm: A combination of parts, `flashbulb.algorithms.registry.Algorithm`; docs/add_an_algorithm.md has
            an example.
    """
    from flashbulb.algorithms.registry import register_algorithm as register

    register(name, algorithm)


def register_cost_stream(
    name: str, make: Callable[[Config], CostStream], settings: tuple[str, ...] = (), summary: str = ""
) -> None:
    """Make known what is added to the cost: `NAME-X` is then algorithm X with it, for every X with a cost critic.

    Args:
        name: One lower-case word.
        make: A function of the configuration that returns an object with the methods of
            `flashbulb.memory.cost_streams.CostStream`.
        settings: The parts of the configuration that it reads, such as "memory".
        summary: One sentence for `flashbulb algorithms`.
    """
    from flashbulb.algorithms.stream_registry import register_cost_stream as register

    register(name, make, settings, summary)
