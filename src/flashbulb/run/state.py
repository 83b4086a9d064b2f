"""All that decides the rest of a run. Random keys follow from the seed and the iteration, so nothing else is random."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from flashbulb.cmdp import CMDP, State
from flashbulb.cmdp.contract import Rings, rings_of
from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.learn.learner import LearnerState, init_learner
from flashbulb.learn.policy import Policy
from flashbulb.memory import Balance, FlashbulbMemory
from flashbulb.normaliser import Normaliser
from flashbulb.recipes import recipe
from flashbulb.run.checkpoint import load_arrays, unflatten
from flashbulb.run.collect import InFlight
from flashbulb.run.metrics import Totals


class RunState(NamedTuple):
    """Every leaf is an array, so a checkpoint is this tree."""

    learner: LearnerState
    normaliser: Normaliser
    memory: FlashbulbMemory
    balance: Balance
    flight: InFlight
    env: State
    totals: Totals

    @property
    def done(self) -> int:
        """Iterations so far."""
        return int(self.totals.iterations)


def start(env: CMDP, policy: Policy, config: Config) -> RunState:
    """The state before iteration 0. Seeds of networks, memory and environment are streams of their own."""
    observations, _ = env.reset(seed=config.seed)
    learner = _new_learner(policy, observations.shape[1], config)
    if config.stagger:
        env.set_state(staggered(env.get_state(), env.max_episode_steps))
    normaliser, observations = _warmed_up(env, policy, learner, observations, config)
    state = _around(learner, observations, env.get_state(), rings_of(env), config)
    return state._replace(normaliser=normaliser)


def staggered(state: State, max_episode_steps: int) -> State:
    """Timers as if members had begun one after the other, evenly spread over an episode."""
    timer = next(name for name in ("steps", "elapsed") if name in state)
    members = len(state[timer])
    return state | {timer: np.arange(members, dtype=state[timer].dtype) * max_episode_steps // members}


def _warmed_up(
    env: CMDP, policy: Policy, learner: LearnerState, observations: np.ndarray, config: Config
) -> tuple[Normaliser, np.ndarray]:
    """What the first policy sees in `warm_up` vector steps, and where the members are after them."""
    normaliser, seen = Normaliser.empty(observations.shape[1]), [observations]
    if not config.warm_up:
        return normaliser, observations
    key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
    params, normalise = jax.tree.map(np.asarray, learner.policy), normaliser.affine()
    for noise in np.asarray(policy.noise(key, (config.warm_up, config.num_envs))):
        action = policy.act(params, normalise(np.asarray(seen[-1], np.float32)), noise)
        seen.append(env.step(policy.to_env(action))[0])
    return normaliser.absorb(np.stack(seen)), seen[-1]


def restore(path: Path, env: CMDP, policy: Policy, config: Config) -> RunState:
    """The state in a checkpoint; the environment is put where it was."""
    arrays = load_arrays(path)
    observations = np.zeros((env.num_envs, *(env.single_observation_space.shape or ())), np.float32)
    learner = jax.eval_shape(lambda: _new_learner(policy, observations.shape[1], config))
    # What a snapshot of the environment holds is the environment's own affair.
    snapshot = {name.removeprefix("env/"): array for name, array in arrays.items() if name.startswith("env/")}
    state = unflatten(arrays, _around(learner, observations, snapshot, rings_of(env), config), path)
    wanted, found = (jax.tree.map(np.shape, tree) for tree in ((learner, observations), (state[0], state.flight[0])))
    if wanted != found:
        raise UsageError(f"checkpoint: {path} has networks or members of other sizes than config.json says.")
    env.set_state(state.env)
    return state


def _new_learner(policy: Policy, observation_size: int, config: Config) -> LearnerState:
    key = jax.random.fold_in(jax.random.key(config.seed), 2**31)
    return init_learner(policy, observation_size, recipe(config.recipe), config, key)


def _around(learner: LearnerState, observations: np.ndarray, env: State, rings: Rings, config: Config) -> RunState:
    size = observations.shape[1]
    return RunState(
        learner,
        Normaliser.empty(size),
        FlashbulbMemory.empty(size, config.memory, np.random.default_rng([config.seed, 1]), rings),
        Balance.start(config.balance),
        InFlight.start(observations),
        env,
        Totals.start(),
    )
