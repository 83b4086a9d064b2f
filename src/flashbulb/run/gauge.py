"""The cost critic's bias as columns of metrics.csv, measured every so many iterations beside the run."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from flashbulb.config import Config
from flashbulb.learn.policy import Policy
from flashbulb.recipes import recipe
from flashbulb.run.bias import Agent, Bias, measure_bias, members_for
from flashbulb.run.state import RunState
from flashbulb.run.world import announce_budget, make_world


class Gauge:
    """Measures what a run is about to use in iteration n: what `flashbulb bias RUN --checkpoint n` would find
    with as many states.

    It has an environment and random streams of its own, so that a run goes the same way with and without it. Every
    row has the same columns, NaN where nothing was measured; they are missing where nothing ever is.
    """

    def __init__(self, config: Config, policy: Policy) -> None:
        self.config, self.policy, self.env = config, policy, None
        if config.bias_every:
            members = members_for(config.bias_states)
            self.env = make_world(recipe(config.recipe), dataclasses.replace(config, num_envs=members))

    def read(self, state: RunState) -> dict[str, float]:
        if self.env is None:
            return {}
        if state.done == 0 or state.done % self.config.bias_every:
            return dict.fromkeys(COLUMNS, float("nan"))
        announce_budget(self.env, state.learner.schedule)
        params = jax.tree.map(np.asarray, state.learner.policy)
        normalise = state.normaliser.affine()
        agent = Agent(self.policy, params, state.learner.critics, normalise, self.config.cost_gamma)
        seed, states = self.config.seed, self.config.bias_states
        return columns(measure_bias(agent, self.env, seed, int(state.totals.steps), states))

    def close(self) -> None:
        if self.env is not None:
            self.env.close()


COLUMNS = tuple(
    name + kind
    for kind in ("", "_risky")
    for name in ("critic_bias", "critic_bias_low", "critic_bias_high", "true_cost_value")
)


def columns(bias: Bias) -> dict[str, float]:
    numbers = [x for group in (bias.all, bias.risky) for x in (*group.bias, group.truth)]
    return {name: float("nan") if x is None else x for name, x in zip(COLUMNS, numbers, strict=True)}
