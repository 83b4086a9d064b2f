"""One iteration of Algorithm 1, and the parts that it computes with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.advantages import cost_to_go
from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.learner import Learner, LearnerState
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import algorithm_of
from flashbulb.algorithms.stream_registry import make_cost_stream
from flashbulb.batch import Batch
from flashbulb.config import Config
from flashbulb.cores import thread_count
from flashbulb.cost_units import learned_costs
from flashbulb.envs import CostVectorEnv
from flashbulb.errors import RunError
from flashbulb.memory import CostStream, unsafe_states
from flashbulb.memory.offline import load_transitions
from flashbulb.memory.resampling import LogLikelihood, OfflinePool
from flashbulb.training.collect import Sampler, collect
from flashbulb.training.train_state import TrainState


class RunParts(NamedTuple):
    """What a run computes with."""

    env: CostVectorEnv
    learner: Learner
    stream: CostStream


@contextlib.contextmanager
def run_parts(config: Config, env: CostVectorEnv | None) -> Iterator[RunParts]:
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


def iterate(config: Config, parts: RunParts, state: TrainState) -> tuple[TrainState, Batch, dict[str, Any]]:
    """One iteration of Algorithm 1: the state after it, its batch, and scalars to report."""
    env, learner, stream = parts
    n, policy = state.iteration, learner.policy
    noise_key, update_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), n))
    noise = np.asarray(policy.noise(noise_key, (config.horizon, config.num_envs)))
    params = jax.tree.map(np.asarray, state.learner.policy)
    sampler = Sampler(policy, params, state.normaliser.frozen())

    batch, running = collect(env, sampler, noise, state.running, n, config.cost_estimate)  # sample under pi_k
    cost_normaliser, learned = learned_costs(state.cost_normaliser, batch.costs, config.cost_normalise)
    batch = batch._replace(learned_costs=learned, unsafe=_unsafe(batch, state.learner, config))
    log_pi = log_likelihood(sampler._replace(params=state.learner.policy))
    memory, batch, recalled = stream.add_intrinsic_cost(state.memory, state.balance, batch, log_pi)  # update M; c^I
    updated, batch, estimated = learner.estimate(state.learner, batch)  # values, advantages, constraint
    updated, updates = learner.update(updated, batch, n / config.iterations, update_key)  # policy, critics
    _require_finite_parameters(updated)
    balance = stream.correct(state.balance, batch)  # beta_{n+1}

    normaliser = state.normaliser.absorb(batch.observations)
    totals = state.totals.add(batch, config.cost_limit)
    state = TrainState(updated, normaliser, memory, balance, running, state.env, totals, cost_normaliser)
    return state, batch, updates | estimated | recalled


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


def _require_finite_parameters(learner: LearnerState) -> None:
    """Stop before anything that is not a number is saved as if it were a policy."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner)):
        raise RunError("the update made parameters that are not finite.")
