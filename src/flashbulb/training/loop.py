"""Algorithm 1 as a loop, and the two ways into it: from the start, and from where an earlier process stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from flashbulb.algorithms.small_network import blas
from flashbulb.analysis.memory_snapshots import most_dangerous_env, save_memory_snapshot, snapshot_iterations
from flashbulb.config import Config
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.base import clock_of
from flashbulb.envs.trusted_env import require_trusted
from flashbulb.errors import Interrupted, RunError, UsageError
from flashbulb.jax_setup import setup_jax
from flashbulb.plugins import require_plugins
from flashbulb.shown_text import printable
from flashbulb.storage.checkpoint import Checkpoints, Damaged
from flashbulb.storage.loggers import load_wandb
from flashbulb.storage.provenance import changes_since
from flashbulb.storage.resume_check import check_files, check_sealed_rows, require_beginning
from flashbulb.storage.run_directory import SPACES_FILE, RunDirectory, check_spaces, load_config, save_spaces
from flashbulb.storage.run_identity import refuse_taken_name
from flashbulb.training.bias_monitor import BiasMonitor
from flashbulb.training.callbacks import Callback, Callbacks, OngoingRun
from flashbulb.training.going_on import record_steps, start_from, with_more_steps
from flashbulb.training.graceful_stop import graceful_stop
from flashbulb.training.iteration import RunParts, iterate, run_parts
from flashbulb.training.metrics import metrics_row
from flashbulb.training.progress import progress_for
from flashbulb.training.recorder import Recorder, Result, draw, read_result, writing
from flashbulb.training.train_state import TrainState, restore, start
from flashbulb.validation import validate

__all__ = ["Result", "resume", "train"]


def train(
    config: Config,
    console: Console | None = None,
    env: CostVectorEnv | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Run a configuration from start to end, on the task that it names or on `env`, a batch of the same size."""
    config = validate(config)
    refuse_taken_name(config)
    console = console or Console()
    setup_jax()
    if config.wandb:
        load_wandb()
    with run_parts(config, env) as parts:
        state = _first_state(config, parts)
        config = _without_clock(config, state, console)
        directory = RunDirectory.create(config)
        with directory.locked():
            save_spaces(directory.path, parts.env)
            what = f"{config.algorithm} on {config.env}, seed {config.seed}: {directory.path}"
            _say(console, what)
            try:
                return _learn(config, directory, parts, state, console, tuple(callbacks))
            except (RunError, UsageError):
                if not directory.metrics.exists():
                    shutil.rmtree(directory.path, ignore_errors=True)  # nothing to go on from, and its name is free
                raise


def resume(
    run: str | Path,
    console: Console | None = None,
    env: CostVectorEnv | None = None,
    threads: int | None = None,
    callbacks: Sequence[Callback] = (),
    steps: int | None = None,
    trusted_env: str | None = None,
) -> Result:
    """Go on with a run as if it had never stopped: same metrics, same parameters, bit for bit.

    `env` and `callbacks` must be given if `train` was given them; `threads` changes the speed and nothing else. With
    more `steps` than it was started for, the run becomes longer: step sizes that decay over a run rise again to where
    they would be in a run of that length. `trusted_env` names the run's environment again if it is the user's own
    (`envs/trusted_env.py`).
    """
    directory, config = RunDirectory(Path(run)), load_config(Path(run))
    config = with_more_steps(config, steps)
    config = validate(dataclasses.replace(config, threads=threads or config.threads))
    require_plugins(config.plugins)
    if env is None or config.bias_every:  # the bias is measured in an environment of its own
        require_trusted(config.env, trusted_env)
    console = console or Console()
    setup_jax()
    with directory.locked(), run_parts(config, env) as parts:
        check_spaces(directory.path, parts.env)
        state = _newest_state(config, directory, parts, console)
        if not (directory.path / SPACES_FILE).exists():  # it was killed at its very start
            save_spaces(directory.path, parts.env)
        if steps is not None and steps != load_config(directory.path).steps:
            record_steps(directory, steps, state.iteration)
        if state.iteration >= config.iterations:
            result = read_result(directory)
            draw(directory, config, result)
            _say(console, f"{directory.path} is finished; there is nothing to resume.")
            return result
        for change in changes_since(directory.path):
            note = f"flashbulb: warning: {change}; the run may not end exactly as it would have."
            print(printable(note), file=sys.stderr)
        what = f"{config.algorithm} on {config.env}, seed {config.seed}: {directory.path}"
        _say(console, f"{what}, after {state.iteration} iterations")
        return _learn(config, directory, parts, state, console, tuple(callbacks))


def _without_clock(config: Config, state: TrainState, console: Console) -> Config:
    """The configuration that an environment without a clock allows: its episodes cannot be staggered, and without that
    J_C must come from whole episodes."""
    if not config.stagger or clock_of(state.env) is not None:
        return config
    note = f"{config.env} cannot be staggered; J_C is estimated from its episodes instead."
    _say(console, note)
    return dataclasses.replace(config, stagger=False, cost_estimate="episodes")


def _learn(
    config: Config,
    directory: RunDirectory,
    parts: RunParts,
    state: TrainState,
    console: Console,
    given: tuple[Callback, ...],
) -> Result:
    env, learner = parts.env, parts.learner
    callbacks = Callbacks(given, OngoingRun(config, directory.path, env, state))
    recorder, snapshots = Recorder(directory, config, state), snapshot_iterations(config)
    with (
        contextlib.closing(recorder),
        contextlib.closing(BiasMonitor(config, learner.policy)) as bias_monitor,
        progress_for(console, config.iterations, state.iteration, config.cost_limit) as progress,
        graceful_stop() as stop,
        blas().limit(limits=1),  # its threads keep spinning after a product and take the cores from ours
    ):
        callbacks.start()
        begun = time.perf_counter()
        for n in range(state.iteration, config.iterations):
            if stop.signal is not None:  # while the first iteration was prepared
                break
            with _named(n, directory):
                metrics: dict[str, Any] = bias_monitor.measure(state)
                before = env.get_state() if n + 1 in snapshots else {}
                state, batch, learned = iterate(config, parts, state)
                metrics = learned | metrics
                learner.algorithm.augmentation_part.tell(env, state.learner.schedule)

                row = metrics_row(batch, state.totals, state.memory, metrics, config.cost_limit)
                row = callbacks.add_columns(state, row)
                seconds, begun = time.perf_counter() - begun, time.perf_counter()
                recorder.record(row, batch, seconds)
                if n + 1 in snapshots:
                    with writing(directory):
                        danger = most_dangerous_env(before, batch.costs, batch.ended)
                        save_memory_snapshot(directory.path, n + 1, state.memory, state.normaliser, danger)
                stopping = stop.signal is not None or callbacks.stopping
                if stopping or (n + 1) % config.checkpoint_every == 0 or n + 1 == config.iterations:
                    state = state._replace(env=env.get_state())
                    recorder.checkpoint(state)
                    callbacks.checkpoint(recorder.checkpoints.path(n + 1))
                progress.show(row, batch.size / seconds)
                if stopping:
                    break
        callbacks.end()
    if stop.signal is not None and state.iteration < config.iterations:
        done = f"stopped after {state.iteration} iterations"
        raise Interrupted(f"{done}; go on with: {directory.how_to_resume(config.env)}", stop.code)
    if callbacks.stopping and state.iteration < config.iterations:
        sentence = f"Stopped after {state.iteration} iterations: {callbacks.run.stop_reason}."
        how = directory.how_to_resume(config.env)
        _say(console, f"{sentence} To go on all the same: {how}")
    return recorder.finish(console)


def _first_state(config: Config, parts: RunParts) -> TrainState:
    """The state before the first iteration, with the networks of another run if the configuration names one."""
    state = start(parts.env, parts.learner, config)
    return state if config.init_from is None else start_from(state, config.init_from)


def _newest_state(config: Config, directory: RunDirectory, parts: RunParts, console: Console) -> TrainState:
    """The newest undamaged checkpoint whose rows are in metrics.csv; the state at the start if there was none yet."""
    checkpoints, rows = Checkpoints(directory.checkpoints), check_files(directory)
    for done in reversed(checkpoints.iterations()):
        path = checkpoints.path(done)
        if done > rows:
            sentence = f"{directory.metrics} ends before {path.name}; an earlier checkpoint is used."
            _say(console, sentence)
            continue
        try:
            file = checkpoints.load(path)
            check_sealed_rows(directory, file, path.name)
            return restore(file.arrays, path, parts.env, parts.learner, config)
        except Damaged as error:
            sentence = str(error).removesuffix("; name another one.")
            _say(console, f"{sentence}; the one before is used.")
    require_beginning(directory, rows, checkpoints.iterations(), config.checkpoint_every)
    return _first_state(config, parts)


def _say(console: Console, sentence: str) -> None:
    """Print a sentence in one line. It may have the name of a stranger's directory in it."""
    console.print(printable(sentence), soft_wrap=True, markup=False)


@contextlib.contextmanager
def _named(n: int, directory: RunDirectory) -> Iterator[None]:
    """Add to an error where it happened."""
    try:
        yield
    except RunError as error:
        raise RunError(f"{directory.path} stopped in iteration {n}: {error}") from error
