"""All that decides the rest of a run: a tree of arrays, which is also the checkpoint.

Random keys follow from the seed and the iteration, so there is no other source of randomness.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from flashbulb.algorithms.learner import Learner, LearnerState
from flashbulb.config import Config
from flashbulb.cost_units import start_normaliser
from flashbulb.envs import CostVectorEnv, State
from flashbulb.envs.base import LidarGroups, lidar_groups_of, stagger_episodes
from flashbulb.errors import UsageError
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser, near_entries, with_near_groups
from flashbulb.storage.checkpoint import STATE_NAMES, Arrays, unflatten
from flashbulb.training.batch_means import RunningEpisodes
from flashbulb.training.metrics import Totals


class TrainState(NamedTuple):
    """Every leaf is an array, so a checkpoint is this tree."""

    learner: LearnerState
    normaliser: Normaliser
    memory: Any  # FlashbulbMemory; with several costs one for each by its name, as for the balance
    balance: Any  # Balance
    running: RunningEpisodes
    env: State
    totals: Totals
    cost_normaliser: Any = ()  # Normaliser, if the critic learns normalised costs

    @property
    def iteration(self) -> int:
        """How many iterations are done, which is the index of the next one."""
        return int(self.totals.iterations)


def start(env: CostVectorEnv, learner: Learner, config: Config) -> TrainState:
    """The state before iteration 0. Networks, memory and environment have random streams of their own."""
    observations, _ = env.reset(seed=config.seed)
    empty = _empty_normaliser(observations.shape[1], lidar_groups_of(env), config)
    state = _init_learner(learner, empty.features, config)
    if config.stagger:
        stagger_episodes(env)
    normaliser, observations = _warm_up(env, learner, state, empty, observations, config)
    assembled = _assemble(state, observations, env.get_state(), lidar_groups_of(env), config)
    return assembled._replace(normaliser=normaliser)


def _empty_normaliser(observation_size: int, lidar_groups: LidarGroups, config: Config) -> Normaliser:
    return Normaliser.empty(observation_size, near_entries(lidar_groups, config.near_lidar))


def _warm_up(
    env: CostVectorEnv,
    learner: Learner,
    state: LearnerState,
    normaliser: Normaliser,
    observations: np.ndarray,
    config: Config,
) -> tuple[Normaliser, np.ndarray]:
    """The normaliser after `warm_up` vector steps of the first policy, and the observations after them.

    Without it the first iteration learns under an identity normaliser and the second under another one.
    """
    seen = [observations]
    if not config.warm_up:
        return normaliser, observations
    key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
    policy, params, normalise = learner.policy, jax.tree.map(np.asarray, state.policy), normaliser.frozen()
    for noise in np.asarray(policy.noise(key, (config.warm_up, config.num_envs))):
        action = policy.act(params, normalise(np.asarray(seen[-1], np.float32)), noise)
        seen.append(env.step(policy.to_env(action))[0])
    return normaliser.absorb(np.stack(seen)), seen[-1]


def restore(arrays: Arrays, path: Path, env: CostVectorEnv, learner: Learner, config: Config) -> TrainState:
    """The state in the arrays of the checkpoint `path`; the environment is set to its part of it."""
    observations = np.zeros((env.num_envs, *(env.single_observation_space.shape or ())), np.float32)
    features = _empty_normaliser(observations.shape[1], lidar_groups_of(env), config).features
    shapes = jax.eval_shape(lambda: _init_learner(learner, features, config))
    # The entries of a snapshot are the environment's own choice.
    snapshot = {name.removeprefix("env/"): array for name, array in arrays.items() if name.startswith("env/")}
    like = _assemble(shapes, observations, snapshot, lidar_groups_of(env), config)
    state = unflatten(arrays, like, STATE_NAMES, path)
    expected, found = (
        jax.tree.map(np.shape, tree) for tree in ((shapes, observations), (state.learner, state.running.observations))
    )
    if expected != found or not np.array_equal(state.normaliser.near, like.normaliser.near):
        raise UsageError(f"checkpoint: {path} has networks or environments of other sizes than config.json says.")
    env.set_state(state.env)
    return state


def _init_learner(learner: Learner, features: int, config: Config) -> LearnerState:
    return learner.init(features, jax.random.fold_in(jax.random.key(config.seed), 2**31))


def _assemble(
    learner: LearnerState, observations: np.ndarray, env: State, lidar_groups: LidarGroups, config: Config
) -> TrainState:
    size, names = observations.shape[1], config.cost_names
    normaliser = _empty_normaliser(size, lidar_groups, config)
    groups = with_near_groups(lidar_groups, size, normaliser.near)
    projecting = np.random.default_rng([config.seed, 1])
    memory: Any = FlashbulbMemory.empty(size, config.memory, projecting, groups, normaliser.features)
    balance: Any = Balance.start(config.balance)
    if names:
        memory, balance = dict.fromkeys(names, memory), dict.fromkeys(names, balance)
    running = RunningEpisodes.start(observations, (len(names),) if names else ())
    costs = start_normaliser(config.cost_normalise)
    return TrainState(learner, normaliser, memory, balance, running, env, Totals.start(len(names)), costs)
