"""From a batch to what the memory learns of it: the memory knows nothing of learners, so the two meet here."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from flashbulb.cmdp import CMDP
from flashbulb.config import Config
from flashbulb.learn.estimates import cost_to_go
from flashbulb.learn.learner import LearnerState
from flashbulb.learn.policy import Policy
from flashbulb.memory import Lesson, unsafe_states
from flashbulb.memory.offline import load_transitions
from flashbulb.memory.resampling import LogLikelihood, Supply
from flashbulb.normaliser import Affine
from flashbulb.recipes import recipe
from flashbulb.run.collect import Batch


def lesson_of(batch: Batch, n: int, learner: LearnerState, policy: Policy, normalise: Affine, config: Config) -> Lesson:
    """Iteration n's batch, sampled by the learner's policy."""
    to_go = None
    if config.memory.criterion == "return":
        seen = batch.observations, batch.next_observations, batch.costs, batch.terminated, batch.ended
        to_go = np.asarray(cost_to_go(learner.critics, *seen, normalise, gamma=config.cost_gamma))
    unsafe = unsafe_states(batch.costs, to_go, config.memory)
    return Lesson(batch.observations, unsafe, n, normalise, likelihood(policy, learner.policy, normalise))


def likelihood(policy: Policy, params: Any, normalise: Affine) -> LogLikelihood:
    """log pi of the environment's actions. The scale between its actions and the policy's is a constant factor of
    the density, which self-normalised weights do not see."""

    def log_pi(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        outputs = policy.outputs(params, normalise(observations))
        return np.asarray(policy.log_prob(outputs, jnp.asarray(policy.from_env(actions))))

    return log_pi


def supply_for(config: Config, env: CMDP) -> Supply | None:
    """The unsafe states of the data set that the configuration names, if its recipe has a memory to put them in."""
    if config.memory.offline is None or recipe(config.recipe).cost_stream != "memory":
        return None
    (size,) = env.single_observation_space.shape or (0,)
    actions = tuple(env.single_action_space.shape or ())
    return Supply.of(load_transitions(config.memory.offline, size, actions))
