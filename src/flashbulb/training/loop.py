"""Algorithm 1 as a loop, and the two ways into it: from the start, and from where an earlier process stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from flashbulb.algorithms.advantages import cost_to_go
from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.critic_fit import blas
from flashbulb.algorithms.learner import Learner, LearnerState
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import algorithm_of
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.analysis.memory_snapshots import most_dangerous_env, save_memory_snapshot, snapshot_iterations
from flashbulb.batch import Batch
from flashbulb.config import Config
from flashbulb.cores import thread_count
from flashbulb.envs import CostVectorEnv
from flashbulb.envs.base import clock_of
from flashbulb.envs.trusted_env import require_trusted
from flashbulb.errors import Interrupted, RunError, UsageError
from flashbulb.jax_setup import setup_jax
from flashbulb.memory import CostStream, unsafe_states
from flashbulb.memory.offline import load_transitions
from flashbulb.memory.resampling import LogLikelihood, OfflinePool
from flashbulb.shown_text import printable
from flashbulb.storage.checkpoint import Checkpoints, Damaged
from flashbulb.storage.loggers import load_wandb
from flashbulb.storage.provenance import changes_since
from flashbulb.storage.resume_check import check_files, check_sealed_rows, require_beginning
from flashbulb.storage.run_directory import SPACES_FILE, RunDirectory, check_spaces, load_config, save_spaces
from flashbulb.training.bias_monitor import BiasMonitor
from flashbulb.training.callbacks import Callback, Callbacks, OngoingRun
from flashbulb.training.collect import Sampler, collect
from flashbulb.training.going_on import record_steps, start_from, with_more_steps
from flashbulb.training.graceful_stop import graceful_stop
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
    console = console or Console()
    setup_jax()
    if config.wandb:
        load_wandb()
    with _parts(config, env) as parts:
        state = _first_state(config, parts)
        config = _without_clock(config, state, console)
        directory = RunDirectory.create(config)
        with directory.locked():
            save_spaces(directory.path, parts.env)
            what = f"{config.algorithm} on {config.env}, seed {config.seed}: {directory.path}"
            console.print(what, soft_wrap=True, markup=False)
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
    if env is None or config.bias_every:  # the bias is measured in an environment of its own
        require_trusted(config.env, trusted_env)
    console = console or Console()
    setup_jax()
    with directory.locked(), _parts(config, env) as parts:
        check_spaces(directory.path, parts.env)
        state = _newest_state(config, directory, parts, console)
        if not (directory.path / SPACES_FILE).exists():  # it was killed at its very start
            save_spaces(directory.path, parts.env)
        if steps is not None and steps != load_config(directory.path).steps:
            record_steps(directory, steps, state.iteration)
        if state.iteration >= config.iterations:
            result = read_result(directory)
            draw(directory, config, result)
            console.print(f"{directory.path} is finished; there is nothing to resume.", soft_wrap=True, markup=False)
            return result
        for change in changes_since(directory.path):
            note = f"flashbulb: warning: {change}; the run may not end exactly as it would have."
            print(printable(note), file=sys.stderr)
        what = f"{config.algorithm} on {config.env}, seed {config.seed}: {directory.path}"
        console.print(f"{what}, after {state.iteration} iterations", soft_wrap=True, markup=False)
        return _learn(config, directory, parts, state, console, tuple(callbacks))


def _without_clock(config: Config, state: TrainState, console: Console) -> Config:
    """The configuration that an environment without a clock allows: its episodes cannot be staggered, and without that
    J_C must come from whole episodes."""
    if not config.stagger or clock_of(state.env) is not None:
        return config
    note = f"{config.env} cannot be staggered; J_C is estimated from its episodes instead."
    console.print(note, soft_wrap=True, markup=False)
    return dataclasses.replace(config, stagger=False, cost_estimate="episodes")


class RunParts(NamedTuple):
    """What a run computes with."""

    env: CostVectorEnv
    learner: Learner
    stream: CostStream


def _learn(
    config: Config,
    directory: RunDirectory,
    parts: RunParts,
    state: TrainState,
    console: Console,
    given: tuple[Callback, ...],
) -> Result:
    env, learner, stream = parts
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
                state, batch, learned = iterate(config, env, learner, stream, state)
                metrics = learned | metrics
                learner.algorithm.augmentation_part.tell(env, state.learner.schedule)

                row = metrics_row(batch, state.totals, state.memory, metrics)
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
        console.print(f"{sentence} To go on all the same: {how}", soft_wrap=True, markup=False)
    return recorder.finish(console)


def iterate(
    config: Config, env: CostVectorEnv, learner: Learner, stream: CostStream, state: TrainState
) -> tuple[TrainState, Batch, dict[str, Any]]:
    """One iteration of Algorithm 1: the state after it, its batch, and scalars to report."""
    n, policy = state.iteration, learner.policy
    noise_key, update_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), n))
    noise = np.asarray(policy.noise(noise_key, (config.horizon, config.num_envs)))
    params = jax.tree.map(np.asarray, state.learner.policy)
    sampler = Sampler(policy, params, state.normaliser.frozen())

    batch, running = collect(env, sampler, noise, state.running, n, config.cost_estimate)  # sample under pi_k
    batch = batch._replace(unsafe=_unsafe(batch, state.learner, config))
    log_pi = log_likelihood(sampler._replace(params=state.learner.policy))
    memory, batch, recalled = stream.add_intrinsic_cost(state.memory, state.balance, batch, log_pi)  # update M; c^I
    updated, batch, estimated = learner.estimate(state.learner, batch)  # values, advantages, constraint
    updated, learned = learner.update(updated, batch, n / config.iterations, update_key)  # policy, critics
    _require_finite_parameters(updated)
    balance = stream.correct(state.balance, batch)  # beta_{n+1}

    normaliser = state.normaliser.absorb(batch.observations)
    totals = state.totals.add(batch, config.cost_limit)
    state = TrainState(updated, normaliser, memory, balance, running, state.env, totals)
    return state, batch, learned | estimated | recalled


def _unsafe(batch: Batch, learner: LearnerState, config: Config) -> np.ndarray:
    """Which states the memory is to store."""
    to_go = None
    if config.memory.criterion == "return":
        seen = batch.observations, batch.next_observations, batch.costs, (batch.terminated, batch.ended)
        to_go = np.asarray(cost_to_go(learner.critics, *seen, batch.normalise, gamma=config.cost_gamma))
    return unsafe_states(batch.costs, to_go, config.memory)


def log_likelihood(sampler: Sampler) -> LogLikelihood:
    """log pi of the environment's actions. The scale between its actions and the policy's is a constant factor of
    the density, which self-normalised weights do not depend on."""
    policy, params, normalise = sampler

    def log_pi(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        outputs = policy.outputs(params, normalise(observations))
        return np.asarray(policy.log_prob(outputs, jnp.asarray(policy.from_env(actions))))

    return log_pi


@contextlib.contextmanager
def _parts(config: Config, env: CostVectorEnv | None) -> Iterator[RunParts]:
    """Environment, learner and cost stream of a run; the environment is closed at the end."""
    algorithm = algorithm_of(config)
    with contextlib.closing(make_training_env(algorithm, config, env)) as env:
        learner = Learner(policy_for(env.single_observation_space, env.single_action_space), algorithm, config)
        pool = offline_pool(config, env) if algorithm.cost_stream == "memory" else None
        stream = make_cost_stream(algorithm.cost_stream, config, thread_count(config.threads), pool)
        yield RunParts(env, learner, stream)


def offline_pool(config: Config, env: CostVectorEnv) -> OfflinePool | None:
    """The unsafe states of the data set that the configuration names, if it names one."""
    if config.memory.offline is None:
        return None
    (size,) = env.single_observation_space.shape or (0,)
    actions = tuple(env.single_action_space.shape or ())
    return OfflinePool.from_transitions(load_transitions(config.memory.offline, size, actions))


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
            console.print(sentence, soft_wrap=True, markup=False)
            continue
        try:
            file = checkpoints.load(path)
            check_sealed_rows(directory, file, path.name)
            return restore(file.arrays, path, parts.env, parts.learner, config)
        except Damaged as error:
            sentence = str(error).removesuffix("; name another one.")
            console.print(f"{sentence}; the one before is used.", soft_wrap=True, markup=False)
    require_beginning(directory, rows, checkpoints.iterations(), config.checkpoint_every)
    return _first_state(config, parts)


@contextlib.contextmanager
def _named(n: int, directory: RunDirectory) -> Iterator[None]:
    """Add to an error where it happened."""
    try:
        yield
    except RunError as error:
        raise RunError(f"{directory.path} stopped in iteration {n}: {error}") from error


def _require_finite_parameters(learner: LearnerState) -> None:
    """Stop before anything that is not a number is saved as if it were a policy."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner)):
        raise RunError("the update made parameters that are not finite.")
