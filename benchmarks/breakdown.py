"""Where an iteration's time goes: `python -m benchmarks.breakdown [algorithm ...] [--tasks ...]`.

The parts of a run's loop are timed one by one over a few iterations, as `run/train.py` calls them. In a run the actor's
step and the critics' fits go on side by side where there are two threads; here they follow each other, on one, so
that each part has its own time and the sum is that of a run with one thread for learning.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flashbulb.algorithms.actor_steps import actor_step_for
from flashbulb.algorithms.estimates import Sample, estimate
from flashbulb.training.memory_input import memory_input

from flashbulb.algorithms.critics import fit
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.proximal import Actor, ActorBatch
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.config import Config
from flashbulb.envs import make
from flashbulb.jax_setup import setup_jax
from flashbulb.memory import stream_for
from flashbulb.storage.run_directory import RunDirectory
from flashbulb.training.collect import collect
from flashbulb.training.metrics import episode_means, metrics_row
from flashbulb.training.recorder import Recorder
from flashbulb.training.train_state import start

Timers = defaultdict[str, float]


def timed(timers: Timers, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        result = jax.block_until_ready(function(*args, **kwargs))
        timers[name] += time.perf_counter() - begun
        return result

    return wrapper


def watch_env(timers: Timers, env: Any) -> None:
    """Physics, autoreset, and the whole step, whatever the family of the task. Where Points glide, that is task logic:
    one call moves, judges and observes, and physics is what is left to MuJoCo."""
    navigates = hasattr(env, "_simulator")
    simulator, advance, restart = (
        (env._simulator, "advance", "_begin") if navigates else (env.physics, "step", "_restart")
    )
    setattr(simulator, advance, timed(timers, "physics", getattr(simulator, advance)))
    setattr(env, restart, timed(timers, "autoreset", getattr(env, restart)))
    env.step = timed(timers, "whole step", env.step)


def split_update(timers: Timers, policy: Any, config: Config) -> Callable[..., Any]:
    """The update's three parts, each compiled by itself."""
    parts = get_algorithm(config.algorithm)
    estimates = timed(
        timers,
        "advantages",
        jax.jit(lambda c, sample, r, beta, affine: estimate(c, sample, r, beta, affine, config)),
    )
    actor_step = timed(timers, "actor update", jax.jit(actor_step_for(policy, parts, config)))
    fit_critics, rng = timed(timers, "critic update", fit), np.random.default_rng(0)

    def update(learner: Any, sample: Sample, normalise: Any, beta: float, excess: float, key: Any) -> Any:
        seen = estimates(learner.critics, sample, jnp.asarray(sample.rewards), jnp.float32(beta), normalise)
        rows = sample.rewards.size
        observations = jnp.asarray(normalise(sample.observations)).reshape(rows, -1)
        actions = jnp.asarray(sample.actions).reshape(rows, -1)
        log_prob = policy.log_prob(policy.outputs(learner.policy, observations), actions)
        a_r, a_c = seen.a_r.reshape(-1), seen.a_c.reshape(-1)
        evidence = ActorBatch(observations, actions, log_prob, (a_r - a_r.mean()) / a_r.std(), a_c - a_c.mean())
        jax.block_until_ready(evidence)
        actor = Actor(learner.policy, learner.optimiser)
        step_size, price = jnp.float32(config.proximal.learning_rate), jnp.float32(0.1)
        actor, _ = actor_step(actor, evidence, jnp.float32(excess), price, step_size, key)
        targets = np.stack([a_r + seen.v_r.reshape(-1)] + [a_c + seen.v_c.reshape(-1)] * parts.cost_critics)
        rate = config.critic.learning_rate
        critics, _ = fit_critics(learner.critics, np.asarray(observations), targets, rng, rate, config.critic)
        return learner._replace(policy=actor.params, optimiser=actor.optimiser, critics=critics), seen.balance_bias

    return update


def measure(config: Config, iterations: int) -> Timers:
    """Seconds per part over `iterations` iterations; one more before them compiles and is not counted."""
    timers: Timers = defaultdict(float)
    env: Any = make(config.env, config.num_envs, config.seed, config.threads)
    policy: Any = policy_for(env.single_observation_space, env.single_action_space)
    state = start(env, policy, config)
    directory = RunDirectory.create(config)
    recorder = Recorder(directory, config, state)
    stream = stream_for(get_algorithm(config.algorithm).cost_stream, config, config.threads or 2)
    policy.act = timed(timers, "actor inference", policy.act)
    watch_env(timers, env)
    update = split_update(timers, policy, config)
    sample_batch = timed(timers, "whole collection", collect)
    recall = timed(timers, "memory", stream.recall)
    record = timed(timers, "logging", recorder.record)
    checkpoint = timed(timers, "checkpoint (a tenth)", recorder.checkpoint)
    for n in range(iterations + 1):
        if n == 1:
            timers.clear()
        noise = np.asarray(policy.noise(jax.random.key(n), (config.horizon, config.num_envs)))
        normalise = state.normaliser.frozen()
        params = jax.tree.map(np.asarray, state.learner.policy)
        batch, running = sample_batch(env, policy, params, normalise, noise, state.running)
        memory, intrinsic, _ = recall(state.memory, memory_input(batch, n, state.learner, policy, normalise, config))
        beta, means = stream.beta(state.balance), episode_means(batch, running, env.max_episode_steps)
        sample = Sample(*(*batch[:-1], intrinsic))
        excess = means.cost - config.cost_limit
        learner, bias = update(state.learner, sample, normalise, beta, excess, jax.random.key(n))
        balance = stream.correct(state.balance, np.asarray(bias), intrinsic)
        totals = state.totals.add(batch, means.cost, config.cost_limit)
        normaliser = state.normaliser.absorb(batch.observations)
        state = state._replace(
            learner=learner, normaliser=normaliser, memory=memory, balance=balance, running=running, totals=totals
        )
        record(metrics_row(n, batch, means, totals, {}, beta, intrinsic, memory), batch, 1.0)
        checkpoint(state._replace(env=env.get_state()))
    timers["checkpoint (a tenth)"] /= 10
    timers["task logic"] = timers["whole step"] - timers["physics"] - timers["autoreset"]
    timers["collection besides"] = timers.pop("whole collection") - timers.pop("whole step") - timers["actor inference"]
    for name in timers:
        timers[name] /= iterations
    return timers


PARTS = (
    "actor inference",
    "physics",
    "task logic",
    "autoreset",
    "collection besides",
    "memory",
    "advantages",
    "actor update",
    "critic update",
    "logging",
    "checkpoint (a tenth)",
)


def table(columns: list[tuple[str, str]], iterations: int, threads: int | None) -> list[str]:
    """Milliseconds of each part, one column for each pair of algorithm and task."""
    found = []
    for name, task in columns:
        with tempfile.TemporaryDirectory() as runs:
            found.append(measure(configure(name, task, runs_dir=Path(runs), threads=threads), iterations))
    heads = [f"{name}, {task.removeprefix('Safety').split('-')[0]}" for name, task in columns]
    lines = [f"| ms of 20,000 steps | {' | '.join(heads)} |", "| --- " * (1 + len(heads)) + "|"]
    rows = {part: [timers[part] for timers in found] for part in PARTS}
    rows["sum"] = [sum(timers.values()) for timers in found]
    return lines + [f"| {part} | {' | '.join(f'{1000 * s:.0f}' for s in row)} |" for part, row in rows.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Where an iteration's time goes.")
    parser.add_argument("algorithms", nargs="*", default=["mice-cpo", "mice-pid"])
    parser.add_argument("--tasks", nargs="+", default=["SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1"])
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    setup_jax()
    columns = [(name, task) for task in options.tasks for name in options.algorithms]
    print("\n".join(table(columns, options.iterations, options.threads)))


if __name__ == "__main__":
    main()
