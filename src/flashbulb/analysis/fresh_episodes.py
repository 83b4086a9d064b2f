"""Episodes of a frozen policy on which its critic was not fitted, with V_C and the sampled return of every state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flashbulb.algorithms.critics import Critics, values
from flashbulb.algorithms.policy import Policy
from flashbulb.analysis.rollout import Act, rollout
from flashbulb.cost_units import CostUnits
from flashbulb.envs import CostVectorEnv
from flashbulb.normaliser import FrozenNormaliser

AT_ONCE = 50  # steps whose states V_C sees in one call


class FrozenAgent(NamedTuple):
    """A policy and its critics, frozen."""

    policy: Policy
    params: Any
    critics: Critics
    normalise: FrozenNormaliser
    gamma: float
    cost_units: CostUnits = CostUnits()  # of the critics

    def actor(self, noise: np.ndarray) -> Act:
        """The policy with the noise of each step of a rollout."""

        def act(observations: np.ndarray, t: int) -> np.ndarray:
            seen = self.normalise(np.asarray(observations, np.float32))
            return self.policy.to_env(self.policy.act(self.params, seen, noise[t]))

        return act

    def cost_value(self, observations: np.ndarray) -> np.ndarray:
        """V_C."""
        return np.asarray(values(self.critics, self.normalise(np.asarray(observations, np.float32)))[1], np.float64)


class FreshEpisodes(NamedTuple):
    """(time, env) each."""

    costs: np.ndarray  # raw
    ended: np.ndarray
    estimate: np.ndarray  # V_C
    returns: np.ndarray  # G_C: discounted costs in the critic's units, V_C where the trajectory is cut


def play(agent: FrozenAgent, env: CostVectorEnv, seed: int, noise: np.ndarray) -> FreshEpisodes:
    """Trajectories from the start states of that seed, as long as the noise."""
    costs, estimate, bootstrap = np.zeros((3, *noise.shape[:2]))
    ended = np.zeros(noise.shape[:2], bool)
    seen: list[np.ndarray] = []
    for step in rollout(env, agent.actor(noise), env.reset(seed=seed)[0], len(noise)):
        costs[step.t], ended[step.t] = step.costs, step.ended
        seen.append(np.array(step.observations, np.float32))
        if len(seen) == AT_ONCE or step.t == len(noise) - 1:
            estimate[step.t + 1 - len(seen) : step.t + 1] = agent.cost_value(np.stack(seen))
            seen.clear()
        cut = step.truncated & ~step.terminated
        if cut.any():
            bootstrap[step.t] = cut * agent.cost_value(np.asarray(step.info["final_obs"]))
    bootstrap[-1] += ~ended[-1] * agent.cost_value(step.next_observations)
    return FreshEpisodes(costs, ended, estimate, returns(agent.cost_units(costs), ended, bootstrap, agent.gamma))


def returns(costs: np.ndarray, ended: np.ndarray, bootstrap: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sums (time, env) to the end of each episode; `bootstrap` is the value of what follows a cut."""
    found, following = np.zeros_like(costs), np.zeros(costs.shape[1])
    for t in reversed(range(len(costs))):
        following = costs[t] + gamma * (np.where(ended[t], 0.0, following) + bootstrap[t])
        found[t] = following
    return found


def r_squared(estimate: np.ndarray, sampled: np.ndarray) -> float:
    """Share of the variance of sampled returns that the estimate explains; its bias counts against it, and below 0 the
    mean would be the better estimate. NaN if the returns do not vary."""
    variance = float(np.var(sampled))
    return 1.0 - float(np.mean(np.square(sampled - estimate))) / variance if variance > 0 else float("nan")
