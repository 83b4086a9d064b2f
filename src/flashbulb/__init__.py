"""Flashbulb: safe reinforcement learning that stays under its cost limit while it learns.

    import flashbulb

    env = flashbulb.make("SafetyPointGoal1-v0", num_envs=20)
    result = flashbulb.train("mice-cpo", "HazardField-v0", steps=1_000_000, seed=0)
    action = flashbulb.load_policy(result.directory).predict(observation)

Heavy libraries are imported when they are first needed, not here.
"""

from __future__ import annotations

from typing import Any

from flashbulb.envs import gymnasium_hook

gymnasium_hook.watch()  # gymnasium.make("flashbulb/<id>") works once both are imported

__version__ = "0.1.0"
__all__ = ["__version__", "env_ids", "load_policy", "make", "resume", "train"]


def __getattr__(name: str) -> Any:
    if name in ("make", "env_ids"):
        from flashbulb import envs as cmdp

        return getattr(cmdp, name)
    if name == "load_policy":
        from flashbulb.analysis.trained_policy import load_policy

        return load_policy
    raise AttributeError(f"module 'flashbulb' has no attribute {name!r}")


def train(algorithm: str, env: str, /, **settings: Any) -> Any:
    """Train an algorithm on a task and return a `Result`.

    Settings are the fields of `flashbulb.config.Config` (`steps`, `seed`, `cost_limit`, ...); fields of its
    parts are given as dictionaries or dataclasses, for example `memory={"neighbours": 5}`.
    """
    from flashbulb.algorithms.registry import configure
    from flashbulb.training.loop import train as run

    return run(configure(algorithm, env, **settings))


def resume(run: Any, **options: Any) -> Any:
    """Go on with the run in that directory as if it had never stopped, and return its `Result`.

    Options are those of `flashbulb.training.loop.resume`: `threads`, `console`, and `env` if `train` was given one.
    """
    from flashbulb.training.loop import resume as go_on

    return go_on(run, **options)
