"""Algorithm 1 as a loop, and the two ways into it: from the start, and from where an earlier process left off."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

from flashbulb.cmdp import CMDP
from flashbulb.config import Config
from flashbulb.errors import Interrupted, RunError
from flashbulb.learn.learner import Episodes, LearnerState, Sample, make_update
from flashbulb.learn.policy import Policy, policy_for
from flashbulb.learn.regression import blas
from flashbulb.memory import CostStream, stream_for
from flashbulb.recipes import recipe as recipe_named
from flashbulb.run.checkpoint import Checkpoints, Damaged
from flashbulb.run.collect import collect
from flashbulb.run.csv_log import recorded_iterations
from flashbulb.run.directory import RunDirectory, load_config
from flashbulb.run.gauge import Gauge
from flashbulb.run.interrupt import wish_to_stop
from flashbulb.run.lesson import lesson_of, supply_for
from flashbulb.run.memories import keep_memory, times
from flashbulb.run.metrics import episode_means, metrics_row
from flashbulb.run.prepare import prepare_jax
from flashbulb.run.progress import progress_for
from flashbulb.run.recorder import Recorder, Result, draw, read_result, writing
from flashbulb.run.spaces import save_spaces
from flashbulb.run.state import RunState, restore, start
from flashbulb.run.weights_and_biases import load_wandb
from flashbulb.run.world import announce_budget, make_world
from flashbulb.validation import validate

__all__ = ["Result", "resume", "train"]


def train(config: Config, console: Console | None = None, env: CMDP | None = None) -> Result:
    """Run a configuration from start to end, on the task that it names or on `env`, a batch of the same size."""
    config = validate(config)
    console = console or Console()
    prepare_jax()
    if config.wandb:
        load_wandb()
    with _world(config, env) as (world, policy):
        stream = _stream(config, world)
        state = start(world, policy, config)
        directory = RunDirectory.create(config)
        with directory.locked():
            save_spaces(directory.path, world)
            console.print(f"{config.recipe} on {config.env}, seed {config.seed}: {directory.path}", soft_wrap=True)
            return _learn(config, directory, world, policy, stream, state, console)


def resume(
    run: str | Path, console: Console | None = None, env: CMDP | None = None, threads: int | None = None
) -> Result:
    """Go on with a run as if it had never stopped: same metrics, same parameters, bit for bit.

    `env` must be given if `train` was given one; `threads` changes the speed and nothing else.
    """
    directory, config = RunDirectory(Path(run)), load_config(Path(run))
    config = validate(dataclasses.replace(config, threads=threads or config.threads))
    console = console or Console()
    prepare_jax()
    with directory.locked(), _world(config, env) as (world, policy):
        stream = _stream(config, world)
        save_spaces(directory.path, world)  # a run killed at its very start has none
        state = _newest_state(config, directory, world, policy, console)
        if state.done >= config.iterations:
            result = read_result(directory)
            draw(directory, config, result)
            console.print(f"{directory.path} is finished; there is nothing to resume.", soft_wrap=True)
            return result
        console.print(
            f"{config.recipe} on {config.env}, seed {config.seed}: {directory.path}, after {state.done} iterations",
            soft_wrap=True,
        )
        return _learn(config, directory, world, policy, stream, state, console)


def _learn(
    config: Config,
    directory: RunDirectory,
    env: CMDP,
    policy: Policy,
    stream: CostStream,
    state: RunState,
    console: Console,
) -> Result:
    recipe = recipe_named(config.recipe)
    update = make_update(policy, recipe, config)
    recorder, memory_times = Recorder(directory, config, state), times(config)

    with (
        contextlib.closing(recorder),
        contextlib.closing(Gauge(config, policy)) as gauge,
        progress_for(console, config.iterations, state.done, config.cost_limit) as progress,
        wish_to_stop() as wish,
        blas().limit(limits=1),  # its threads go on spinning after a product and keep ours from the cores
    ):
        begun = time.perf_counter()
        for n in range(state.done, config.iterations):
            with _named(n, directory):
                measured = gauge.read(state)
                noise_key, update_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), n))
                noise = np.asarray(policy.noise(noise_key, (config.horizon, config.num_envs)))
                normalise = state.normaliser.affine()
                params = jax.tree.map(np.asarray, state.learner.policy)

                before = env.get_state() if n + 1 in memory_times else {}
                batch, flight = collect(env, policy, params, normalise, noise, state.flight)  # sample under pi_k
                lesson = lesson_of(batch, n, state.learner, policy, normalise, config)
                memory, intrinsic, recalled = stream.recall(state.memory, lesson)  # update M; c^I
                beta = stream.beta(state.balance)
                means = episode_means(batch, flight, env.max_episode_steps, config.cost_estimate)
                learner, bias, report = update(  # values, advantages, policy
                    state.learner,
                    Sample(*batch[:-1], intrinsic),
                    normalise,
                    np.float32(beta),
                    Episodes(*map(np.float32, (means.cost, means.length, means.standard_error))),
                    np.float32(n / config.iterations),
                    update_key,
                )
                refuse_not_finite(learner)
                balance = stream.correct(state.balance, np.asarray(bias), intrinsic)  # beta_{n+1}
                announce_budget(env, learner.schedule)

                totals = state.totals.add(batch, means.cost, config.cost_limit)
                normaliser = state.normaliser.absorb(batch.observations)
                state = RunState(learner, normaliser, memory, balance, flight, state.env, totals)
                row = metrics_row(n, batch, means, totals, report | recalled | measured, beta, intrinsic, memory)
                seconds, begun = time.perf_counter() - begun, time.perf_counter()
                recorder.record(row, batch, seconds)
                if n + 1 in memory_times:
                    with writing(directory):
                        keep_memory(directory.path, state, before, batch)
                if wish.signal or (n + 1) % config.checkpoint_every == 0 or n + 1 == config.iterations:
                    state = state._replace(env=env.get_state())
                    recorder.checkpoint(state)
                progress.show(row, batch.costs.size / seconds)
                if wish.signal:
                    break
    if state.done < config.iterations:
        raise Interrupted(f"stopped after {state.done} iterations; go on with: {directory.how_to_resume}", wish.code)
    return recorder.finish(console)


@contextlib.contextmanager
def _world(config: Config, env: CMDP | None) -> Iterator[tuple[CMDP, Policy]]:
    with contextlib.closing(make_world(recipe_named(config.recipe), config, env)) as world:
        yield world, policy_for(world.single_observation_space, world.single_action_space)


def _stream(config: Config, env: CMDP) -> CostStream:
    workers = config.threads or os.cpu_count() or 1
    return stream_for(recipe_named(config.recipe).cost_stream, config, workers, supply_for(config, env))


def _newest_state(config: Config, directory: RunDirectory, env: CMDP, policy: Policy, console: Console) -> RunState:
    """The newest checkpoint that can be believed and whose rows are in metrics.csv; at worst the very beginning."""
    checkpoints, rows = Checkpoints(directory.checkpoints), recorded_iterations(directory.metrics)
    for done in reversed(checkpoints.iterations()):
        path = checkpoints.path(done)
        if done > rows:
            console.print(
                f"{directory.metrics} ends before {path.name}; an earlier checkpoint is used.", soft_wrap=True
            )
            continue
        try:
            return restore(path, env, policy, config)
        except Damaged as error:
            sentence = str(error).removesuffix("; name another one.")
            console.print(f"{sentence}; the one before is used.", soft_wrap=True)
            checkpoints.set_aside(done)
    return start(env, policy, config)


@contextlib.contextmanager
def _named(n: int, directory: RunDirectory) -> Iterator[None]:
    """Say where it happened."""
    try:
        yield
    except RunError as error:
        raise RunError(f"{directory.path} stopped in iteration {n}: {error}") from error


def refuse_not_finite(learner: LearnerState) -> None:
    """Stop before anything that is not a number is saved as if it were a policy."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner)):
        raise RunError("the update made parameters that are not finite.")
