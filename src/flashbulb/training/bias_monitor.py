"""The cost critic's bias as columns of metrics.csv, measured every so many iterations beside the run."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.policy import Policy
from flashbulb.algorithms.registry import algorithm_of
from flashbulb.analysis.critic_bias import CriticBias, bias_num_envs, measure_bias
from flashbulb.analysis.fresh_episodes import FrozenAgent
from flashbulb.config import Config
from flashbulb.cost_units import cost_units
from flashbulb.training.train_state import TrainState


class BiasMonitor:
    """Measures the critic that iteration n is about to use, as `flashbulb bias RUN --checkpoint n` does.

    It has an environment and random streams of its own, so that a run is the same with and without it. Every row has
    the same columns, NaN where nothing was measured; they are missing if nothing is ever measured.
    """

    def __init__(self, config: Config, policy: Policy) -> None:
        self.config, self.policy, self.env = config, policy, None
        if config.bias_every:
            config = dataclasses.replace(config, num_envs=bias_num_envs(config.bias_states))
            self.env = make_training_env(algorithm_of(config), config)

    def measure(self, state: TrainState) -> dict[str, float]:
        if self.env is None:
            return {}
        if state.iteration == 0 or state.iteration % self.config.bias_every:
            return dict.fromkeys(COLUMNS, float("nan"))
        algorithm_of(self.config).augmentation_part.tell(self.env, state.learner.schedule)
        params = jax.tree.map(np.asarray, state.learner.policy)
        normalise = state.normaliser.frozen()
        units = cost_units(state.cost_normaliser, self.config.cost_normalise)
        agent = FrozenAgent(self.policy, params, state.learner.critics, normalise, self.config.cost_gamma, units)
        seed, states = self.config.seed, self.config.bias_states
        return columns(measure_bias(agent, self.env, seed, int(state.totals.steps), states))

    def close(self) -> None:
        if self.env is not None:
            self.env.close()


COLUMNS = (
    *("critic_bias_rollout", "critic_bias_rollout_low", "critic_bias_rollout_high", "true_cost_value"),
    *("critic_bias_rollout_risky", "critic_bias_rollout_risky_low", "critic_bias_rollout_risky_high"),
    "true_cost_value_risky",
    *("critic_bias_rollout_initial", "critic_bias_rollout_initial_low", "critic_bias_rollout_initial_high"),
    *("true_cost_value_initial", "critic_r2"),
)


def columns(bias: CriticBias) -> dict[str, float]:
    numbers = [x for group in (bias.all, bias.risky, bias.initial) for x in (*group.bias, group.truth)]
    numbers.append(bias.r2)
    return {name: float("nan") if x is None else x for name, x in zip(COLUMNS, numbers, strict=True)}
