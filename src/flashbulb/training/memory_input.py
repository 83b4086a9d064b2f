"""From a batch to what the memory learns of it: the memory knows nothing of learners, so the two meet here."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from flashbulb.algorithms.estimates import cost_to_go
from flashbulb.algorithms.learner import LearnerState
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.registry import get_algorithm
from flashbulb.config import Config
from flashbulb.envs import CostVectorEnv
from flashbulb.memory import MemoryInput, unsafe_states
from flashbulb.memory.offline import load_transitions
from flashbulb.memory.resampling import LogLikelihood, OfflinePool
from flashbulb.normaliser import FrozenNormaliser
from flashbulb.training.collect import Batch


def memory_input(
    batch: Batch, n: int, learner: LearnerState, policy: Policy, normalise: FrozenNormaliser, config: Config
) -> MemoryInput:
    """Iteration n's batch, sampled by the learner's policy."""
    to_go = None
    if config.memory.criterion == "return":
        seen = batch.observations, batch.next_observations, batch.costs, batch.terminated, batch.ended
        to_go = np.asarray(cost_to_go(learner.critics, *seen, normalise, gamma=config.cost_gamma))
    unsafe = unsafe_states(batch.costs, to_go, config.memory)
    return MemoryInput(batch.observations, unsafe, n, normalise, likelihood(policy, learner.policy, normalise))


def likelihood(policy: Policy, params: Any, normalise: FrozenNormaliser) -> LogLikelihood:
    """log pi of the environment's actions. The scale between its actions and the policy's is a constant factor of
    the density, which self-normalised weights do not see."""

    def log_pi(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        outputs = policy.outputs(params, normalise(observations))
        return np.asarray(policy.log_prob(outputs, jnp.asarray(policy.from_env(actions))))

    return log_pi


def offline_pool(config: Config, env: CostVectorEnv) -> OfflinePool | None:
    """The unsafe states of the data set that the configuration names, if its algorithm has a memory to put them in."""
    if config.memory.offline is None or get_algorithm(config.algorithm).cost_stream != "memory":
        return None
    (size,) = env.single_observation_space.shape or (0,)
    actions = tuple(env.single_action_space.shape or ())
    return OfflinePool.of(load_transitions(config.memory.offline, size, actions))
