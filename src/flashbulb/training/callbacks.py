"""Callbacks: functions of the user that a run calls at its start, after every iteration and checkpoint, and at its end.

A callback may read everything, add columns to the metrics and ask the run to stop. It does not change what is learned,
so a run with callbacks has the metrics of one without, and resumes as exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from flashbulb.analysis.evaluation import evaluate
from flashbulb.analysis.trained_policy import TrainedPolicy
from flashbulb.config import Config
from flashbulb.cost_limits import limits_of_rows
from flashbulb.envs import CostVectorEnv
from flashbulb.errors import UsageError
from flashbulb.storage.checkpoint import STATE_NAMES, file_name
from flashbulb.storage.csv_log import CsvRow
from flashbulb.storage.run_directory import PolicySpaces
from flashbulb.storage.run_list import read_metrics
from flashbulb.training.train_state import TrainState
from flashbulb.validation import refusal


class OngoingRun:
    """A run as its callbacks see it."""

    def __init__(self, config: Config, directory: Path, env: CostVectorEnv, state: TrainState) -> None:
        self.config, self.directory, self._env, self._state = config, directory, env, state
        self.stop_reason: str | None = None

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self._state.iteration

    def stop(self, reason: str) -> None:
        """Ask the run to stop after this iteration, with a checkpoint; `resume` can go on from there."""
        self.stop_reason = reason

    def metrics(self) -> dict[str, np.ndarray]:
        """The metrics that are recorded so far, by column; of a resumed run also those before it was interrupted."""
        columns = read_metrics(self.directory)
        return {name: column[: self.iteration] for name, column in columns.items()}

    def policy(self) -> TrainedPolicy:
        """The current policy with its normaliser and critics."""
        state = self._state
        parts = {"learner": state.learner, "normaliser": state.normaliser, "totals": state.totals}
        leaves, _ = jax.tree_util.tree_flatten_with_path(parts)
        arrays = {
            file_name(jax.tree_util.keystr(keys, simple=True, separator="/"), STATE_NAMES): np.asarray(leaf)
            for keys, leaf in leaves
        }
        observations: Any = self._env.single_observation_space
        actions: Any = self._env.single_action_space
        spaces = PolicySpaces(observations, actions, self._env.max_episode_steps)
        policy = TrainedPolicy(arrays, spaces, self.config)
        policy.trusted_env = self.config.env  # the run is on it already
        return policy


class Callback:
    """What a run calls; a callback overrides what it needs."""

    def on_start(self, run: OngoingRun) -> None:
        """Before the first iteration, also of a resumed run."""

    def on_iteration_end(self, run: OngoingRun, metrics: CsvRow) -> Mapping[str, float] | None:
        """After each iteration, with its row of metrics. What is returned becomes columns of it."""

    def on_checkpoint(self, run: OngoingRun, path: Path) -> None:
        """After a checkpoint was written."""

    def on_end(self, run: OngoingRun) -> None:
        """After the last iteration, or after a stop."""


class StopWhenLimitIsKept(Callback):
    """Stop once the mean cost has kept the limit for this many iterations in a row."""

    def __init__(self, iterations: int) -> None:
        self.iterations = _at_least_1("iterations", iterations)
        self._kept = 0

    def on_start(self, run: OngoingRun) -> None:
        metrics = run.metrics()
        over = np.flatnonzero(metrics.get("cost", np.zeros(0)) > limits_of_rows(metrics, run.config.cost_limit))
        self._kept = run.iteration - (int(over[-1]) + 1 if len(over) else 0)

    def on_iteration_end(self, run: OngoingRun, metrics: CsvRow) -> None:
        self._kept = self._kept + 1 if metrics["cost"] <= _limit(run, metrics) else 0
        if self._kept >= self.iterations:
            run.stop(f"the limit was kept for {self._kept} iterations")


def _limit(run: OngoingRun, metrics: CsvRow) -> float:
    """What the cost of an iteration is compared with; the leading one of several has its limit beside it."""
    return metrics["limit"] if run.config.cost_names else run.config.limit


class EvaluateEvery(Callback):
    """Play episodes on seeds that training does not use, every so many iterations.

    Adds the columns `evaluation_return` and `evaluation_cost`, which are empty in the iterations between.
    """

    def __init__(self, iterations: int, episodes: int = 20, deterministic: bool = True) -> None:
        self.iterations, self.episodes = _at_least_1("iterations", iterations), _at_least_1("episodes", episodes)
        self.mode = "deterministic" if deterministic else "stochastic"

    def on_iteration_end(self, run: OngoingRun, metrics: CsvRow) -> Mapping[str, float]:
        if run.iteration % self.iterations:
            return {"evaluation_return": np.nan, "evaluation_cost": np.nan}
        measured = evaluate(run.policy(), self.episodes, (self.mode,))[self.mode]
        return {f"evaluation_{name}": measured[name].mean for name in ("return", "cost")}


class ProgressHook(Callback):
    """Call `show(done, iterations, metrics)` after every iteration, for example to update a widget of a notebook.

    Without a function one line is written again and again. Give `verbose=False` to `train` with it.
    """

    def __init__(self, show: Callable[[int, int, CsvRow], None] | None = None) -> None:
        self.show = show or _rewrite_line

    def on_iteration_end(self, run: OngoingRun, metrics: CsvRow) -> None:
        self.show(run.iteration, run.config.iterations, metrics)


def _rewrite_line(done: int, iterations: int, metrics: CsvRow) -> None:
    line = f"iteration {done}/{iterations}  return {metrics['return']:.2f}  cost {metrics['cost']:.1f}"
    sys.stdout.write(f"\r{line:<60}" + ("\n" if done == iterations else ""))
    sys.stdout.flush()


class Callbacks:
    """All callbacks of a run, called in their order."""

    def __init__(self, callbacks: tuple[Callback, ...], run: OngoingRun) -> None:
        for callback in callbacks:
            if not isinstance(callback, Callback):
                kind = "the class " + callback.__name__ if isinstance(callback, type) else type(callback).__name__
                raise UsageError(f"callbacks: {kind} is not allowed; every one must be an object of a Callback.")
        self.callbacks, self.run = callbacks, run

    @property
    def stopping(self) -> bool:
        return self.run.stop_reason is not None

    def start(self) -> None:
        for callback in self.callbacks:
            callback.on_start(self.run)

    def add_columns(self, state: TrainState, row: CsvRow) -> CsvRow:
        """The row of metrics with what the callbacks add to it; what is there already cannot be replaced."""
        self.run._state = state
        for callback in self.callbacks:
            added = callback.on_iteration_end(self.run, dict(row)) or {}
            taken = sorted(set(added) & set(row))
            if taken:
                raise UsageError(f"callbacks: the column {taken[0]!r} of {type(callback).__name__} is taken.")
            row = row | {name: float(value) for name, value in added.items()}
        return row

    def checkpoint(self, path: Path) -> None:
        for callback in self.callbacks:
            callback.on_checkpoint(self.run, path)

    def end(self) -> None:
        for callback in self.callbacks:
            callback.on_end(self.run)


def _at_least_1(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise refusal(name, value, "a whole number of at least 1")
    return value
