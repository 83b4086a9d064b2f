"""All that decides the rest of a run. Random keys follow from the seed and the iteration, so nothing else is random."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from flashbulb.algorithms.learner import LearnerState, init_learner
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.registry import get_algorithm
from flashbulb.config import Config
from flashbulb.envs import CostVectorEnv, State
from flashbulb.envs.base import LidarGroups, lidar_groups_of
from flashbulb.errors import UsageError
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser
from flashbulb.storage.checkpoint import STATE_NAMES, load_arrays, unflatten
from flashbulb.training.collect import RunningEpisodes
from flashbulb.training.metrics import Totals


class TrainState(NamedTuple):
    """Every leaf is an array, so a checkpoint is this tree."""

    learner: LearnerState
    normaliser: Normaliser
    memory: FlashbulbMemory
    balance: Balance
    running: RunningEpisodes
    env: State
    totals: Totals

    @property
    def done(self) -> int:
        """Iterations so far."""
        return int(self.totals.iterations)


def start(env: CostVectorEnv, policy: Policy, config: Config) -> TrainState:
    """The state before iteration 0. Seeds of networks, memory and environment are streams of their own."""
    observations, _ = env.reset(seed=config.seed)
    learner = _new_learner(policy, observations.shape[1], config)
    return _around(learner, observations, env.get_state(), lidar_groups_of(env), config)


def restore(path: Path, env: CostVectorEnv, policy: Policy, config: Config) -> TrainState:
    """The state in a checkpoint; the environment is put where it was."""
    arrays = load_arrays(path)
    observations = np.zeros((env.num_envs, *(env.single_observation_space.shape or ())), np.float32)
    learner = jax.eval_shape(lambda: _new_learner(policy, observations.shape[1], config))
    # What a snapshot of the environment holds is the environment's own affair.
    snapshot = {name.removeprefix("env/"): array for name, array in arrays.items() if name.startswith("env/")}
    state = unflatten(arrays, _around(learner, observations, snapshot, lidar_groups_of(env), config), STATE_NAMES, path)
    wanted, found = (jax.tree.map(np.shape, tree) for tree in ((learner, observations), (state[0], state.running[0])))
    if wanted != found:
        raise UsageError(f"checkpoint: {path} has networks or members of other sizes than config.json says.")
    env.set_state(state.env)
    return state


def _new_learner(policy: Policy, observation_size: int, config: Config) -> LearnerState:
    key = jax.random.fold_in(jax.random.key(config.seed), 2**31)
    return init_learner(policy, observation_size, get_algorithm(config.algorithm), config, key)


def _around(
    learner: LearnerState, observations: np.ndarray, env: State, rings: LidarGroups, config: Config
) -> TrainState:
    size = observations.shape[1]
    return TrainState(
        learner,
        Normaliser.empty(size),
        FlashbulbMemory.empty(size, config.memory, np.random.default_rng([config.seed, 1]), rings),
        Balance.start(config.balance),
        RunningEpisodes.start(observations),
        env,
        Totals.start(),
    )
