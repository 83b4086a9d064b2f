"""Algorithm 1 as a loop, and what surrounds it: start, record, finish."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console

from flashbulb.cmdp import CMDP, State
from flashbulb.config import Config
from flashbulb.errors import RunError
from flashbulb.learn.learner import Episodes, LearnerState, Sample, init_learner, make_update
from flashbulb.learn.policy import Policy, policy_for
from flashbulb.memory import Balance, FlashbulbMemory, anticipation, stream_for
from flashbulb.normaliser import Normaliser
from flashbulb.recipes import recipe as recipe_named
from flashbulb.run.checkpoint import save_tree
from flashbulb.run.collect import Batch, InFlight, collect
from flashbulb.run.directory import RunDirectory
from flashbulb.run.figure import draw_curves
from flashbulb.run.metrics import (
    CsvLog,
    EpisodeMeans,
    Row,
    TensorBoard,
    Totals,
    episode_means,
    episode_rows,
    read_csv,
)
from flashbulb.run.progress import progress_for
from flashbulb.run.spaces import save_spaces
from flashbulb.run.weights_and_biases import WeightsAndBiases, load_wandb
from flashbulb.run.world import announce_budget, make_world
from flashbulb.validation import validate


class RunState(NamedTuple):
    """All that decides the rest of a run; every leaf is an array, so a checkpoint is this tree."""

    learner: LearnerState
    normaliser: Normaliser
    memory: FlashbulbMemory
    balance: Balance
    flight: InFlight
    env: State
    totals: Totals


class Result(NamedTuple):
    """What `train` returns: where the run is, its metrics by column, and its last iteration."""

    directory: Path
    metrics: dict[str, np.ndarray]
    summary: Row


def train(config: Config, console: Console | None = None, env: CMDP | None = None) -> Result:
    """Run a configuration from start to end, on the task that it names or on `env`, a batch of the same size."""
    validate(config)
    use_compilation_cache()
    console = console or Console()
    recipe = recipe_named(config.recipe)
    env = make_world(recipe, config, env)
    policy = policy_for(env.single_observation_space, env.single_action_space)
    state = start(env, policy, config)
    update = make_update(policy, recipe, config)
    if config.wandb:
        load_wandb()
    directory = RunDirectory.create(config)
    save_spaces(directory.path, env)
    console.print(f"{config.recipe} on {config.env}, seed {config.seed}: {directory.path}", soft_wrap=True)
    recorder = Recorder(directory, config)
    stream = stream_for(recipe.cost_stream, config, workers=config.threads or os.cpu_count() or 1)

    with progress_for(console, config.iterations, 0, config.cost_limit) as progress:
        for n in range(config.iterations):
            begun = time.perf_counter()
            noise_key, update_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), n))
            noise = np.asarray(policy.noise(noise_key, (config.horizon, config.num_envs)))
            normalise = state.normaliser.affine()
            params = jax.tree.map(np.asarray, state.learner.policy)

            batch, flight = collect(env, policy, params, normalise, noise, state.flight)  # sample under pi_k
            seen = batch.observations, batch.costs
            memory, intrinsic = stream.recall(state.memory, *seen, n, normalise)  # update M; c^I
            beta = stream.beta(state.balance)
            means = episode_means(batch, flight, env.max_episode_steps)
            learner, bias, report = update(  # values, advantages, policy
                state.learner,
                Sample(*batch[:-1], intrinsic),
                normalise,
                np.float32(beta),
                Episodes(np.float32(means.cost), np.float32(means.length)),
                np.float32(n / config.iterations),
                update_key,
            )
            balance = stream.correct(state.balance, np.asarray(bias), intrinsic)  # beta_{n+1}
            announce_budget(env, learner.schedule)

            totals = state.totals.add(batch, means.cost, config.cost_limit)
            normaliser = state.normaliser.absorb(batch.observations)
            state = RunState(learner, normaliser, memory, balance, flight, state.env, totals)
            row = metrics_row(n, batch, means, totals, report, beta, intrinsic, memory)
            refuse_not_finite(row, learner)
            rate = batch.costs.size / (time.perf_counter() - begun)
            recorder.record(row, batch, time.perf_counter() - begun, rate)
            if (n + 1) % config.checkpoint_every == 0 or n + 1 == config.iterations:
                state = state._replace(env=env.get_state())
                save_tree(directory.checkpoints / f"{n + 1:06d}.safetensors", state)
            progress.show(row, rate)
    env.close()
    return recorder.finish(console)


def start(env: CMDP, policy: Policy, config: Config) -> RunState:
    """The state before iteration 0. Seeds of networks, memory and environment are streams of their own."""
    observations, _ = env.reset(seed=config.seed)
    size = observations.shape[1]
    key = jax.random.fold_in(jax.random.key(config.seed), 2**31)
    return RunState(
        init_learner(policy, size, recipe_named(config.recipe), config, key),
        Normaliser.empty(size),
        FlashbulbMemory.empty(size, config.memory, np.random.default_rng([config.seed, 1])),
        Balance.start(config.balance),
        InFlight.start(observations),
        env.get_state(),
        Totals.start(),
    )


def metrics_row(
    n: int,
    batch: Batch,
    means: EpisodeMeans,
    totals: Totals,
    report: dict[str, Any],
    beta: float,
    intrinsic: np.ndarray,
    memory: FlashbulbMemory,
) -> Row:
    """A row of metrics.csv: measures of METHOD.md, section 7."""
    iterations = int(totals.iterations)
    return {
        "iteration": n,
        "steps": int(totals.steps),
        "return": float(means.returns),
        "cost": float(means.cost),
        "length": means.length,
        "episodes": len(batch.finished.costs),
        "episode_estimated": int(means.estimated),
        "violation_rate": float(totals.violations) / iterations,
        "mean_excess": float(totals.excess) / iterations,
        "cost_rate": float(totals.cost) / int(totals.steps),
        "beta": beta,
        "intrinsic_cost": float(intrinsic.mean()),
        "memory_size": memory.size,
        "anticipation": anticipation(intrinsic, batch.costs, batch.ended) if memory.size else float("nan"),
        **{name: float(value) for name, value in report.items()},
    }


def refuse_not_finite(row: Row, learner: LearnerState) -> None:
    """Stop before anything that is not a number is saved as if it were a policy."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner)):
        raise RunError(f"the update of iteration {row['iteration']} made parameters that are not finite.")


class Recorder:
    """Writes what the loop reports."""

    def __init__(self, directory: RunDirectory, config: Config) -> None:
        self.directory, self.config = directory, config
        self.metrics, self.episodes = CsvLog(directory.metrics), CsvLog(directory.episodes)
        self.timing = CsvLog(directory.timing)
        self.dashboards: list[TensorBoard | WeightsAndBiases] = [TensorBoard(directory.path)]
        if config.wandb:
            self.dashboards.append(WeightsAndBiases(directory.path, config))

    def record(self, row: Row, batch: Batch, seconds: float, rate: float) -> None:
        self.metrics.write([row])
        self.episodes.write(episode_rows(batch, int(row["iteration"]), int(row["steps"]) - batch.costs.size))
        self.timing.write([{"iteration": row["iteration"], "seconds": seconds, "steps_per_second": rate}])
        for dashboard in self.dashboards:
            dashboard.write(row | {"steps_per_second": rate}, int(row["steps"]))

    def finish(self, console: Console) -> Result:
        for dashboard in self.dashboards:
            dashboard.close()
        metrics = read_csv(self.directory.metrics)
        config = self.config
        title = f"{config.recipe} on {config.env}, seed {config.seed}"
        draw_curves(metrics, config.cost_limit, title, self.directory.figure)
        summary = {name: float(column[-1]) for name, column in metrics.items()}
        console.print(summary_text(metrics, config, self.directory), soft_wrap=True, highlight=False)
        return Result(self.directory.path, metrics, summary)


def summary_text(metrics: dict[str, np.ndarray], config: Config, directory: RunDirectory) -> str:
    """The result in words, over the last tenth of the run and over all of it."""
    tail = max(1, len(metrics["steps"]) // 10)
    returns, cost = metrics["return"][-tail:].mean(), metrics["cost"][-tail:].mean()
    kept = "under" if cost <= config.cost_limit else "OVER"
    return (
        f"\nAfter {metrics['steps'][-1]:,.0f} steps (mean of the last {tail} iterations):\n"
        f"  episode return   {returns:.2f}\n"
        f"  episode cost     {cost:.2f}  ({kept} the limit of {config.cost_limit:g})\n"
        f"Over the whole of training:\n"
        f"  violation rate   {100 * metrics['violation_rate'][-1]:.0f} % of iterations above the limit\n"
        f"  mean excess      {metrics['mean_excess'][-1]:.2f} above the limit per episode\n"
        f"  cost rate        {metrics['cost_rate'][-1]:.4f} per step\n"
        f"Curves: {directory.figure}\nMetrics: {directory.metrics}"
    )


def use_compilation_cache() -> None:
    """Keep compiled updates between runs, in the user's cache directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flashbulb" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
