"""Bias of the cost critic, estimate minus truth, measured as in Figures 2 and 5 of the paper (METHOD.md, section 8).

Visited states are snapshotted, each is rolled out many times under the frozen policy, and V_C there is compared with
the mean discounted extrinsic cost. Raw costs on both sides, training's frozen normaliser, an environment of its own.

The truth is that of an endless episode. GAE bootstraps where the time limit cuts an episode, so that is what V_C
estimates; a rollout that stopped at the limit would call every late state overestimated. So the copies' clocks are
turned back until the limit is out of reach. And copies share the present but not the future: each draws its noise,
and where the environment keeps its generators under `rng` in the snapshot, its goals and layouts, from a stream of its
own. (A foreign environment has no clock to turn back; there the limit bootstraps with V_C, as in training, and what
is random within its episode is the same for all copies.)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.stats import t as student

from flashbulb.algorithms.critics import Critics, values
from flashbulb.algorithms.policy import Policy
from flashbulb.analysis.evaluation import CONFIDENCE, Estimate, evaluation_seed
from flashbulb.envs import CostVectorEnv, State
from flashbulb.normaliser import FrozenNormaliser

MEMBERS = 200  # of the environment that is measured in, at most; more are not faster
STATES, ROLLOUTS = 50, 20  # a thousand episodes, as in the paper
SOON = 10  # a state is risky if one of the next ten steps costs
NEGLIGIBLE = 1e-3  # discount after which a rollout may stop; V_C stands in for the rest
CLOCKS = ("elapsed", "steps")  # what the tasks call the steps since an episode began


def members_for(states: int) -> int:
    """Of the environment: a few states need not be looked for in many episodes."""
    return min(MEMBERS, 4 * states)


class Agent(NamedTuple):
    """A policy and its critics, frozen."""

    policy: Policy
    params: Any
    critics: Critics
    normalise: FrozenNormaliser
    gamma: float

    def act(self, observations: np.ndarray, noise: np.ndarray) -> np.ndarray:
        seen = self.normalise(np.asarray(observations, np.float32))
        return self.policy.to_env(self.policy.act(self.params, seen, noise))

    def cost_value(self, observations: np.ndarray) -> np.ndarray:
        """V_C."""
        return np.asarray(values(self.critics, self.normalise(np.asarray(observations, np.float32)))[1], np.float64)


class Group(NamedTuple):
    """Bias over some states: V_C minus truth with its confidence interval, and the means of both."""

    bias: Estimate
    estimate: float
    truth: float
    states: int


class Bias(NamedTuple):
    all: Group
    risky: Group


class Visits(NamedTuple):
    """Moments of trajectories: step and member of each."""

    step: np.ndarray
    member: np.ndarray


def measure_bias(
    agent: Agent, env: CostVectorEnv, seed: int, steps: int, states: int = STATES, rollouts: int = ROLLOUTS
) -> Bias:
    """Roll `states` visited states out `rollouts` times each: half of them drawn from all, half from the risky ones.

    The env's members are used as they come; `seed` and `steps`, the run's seed and progress, decide all that is random.
    """
    visiting, rolling, choosing = np.random.SeedSequence([evaluation_seed(seed), 5, steps]).generate_state(3)
    start = int(visiting) % (2**32 - env.num_envs)
    noise = _noise(agent, int(visiting), env.max_episode_steps, env.num_envs)
    costs, ended = _watch(agent, env, start, noise)
    rng = np.random.default_rng(int(choosing))
    anywhere = draw_visits(np.ones(costs.shape, bool), states - states // 2, rng)
    dangerous = draw_visits(risky(costs, ended), states // 2, rng)
    visits = Visits(*(np.concatenate(pair) for pair in zip(anywhere, dangerous, strict=True)))

    snapshot, observations = _revisit(agent, env, start, noise, visits)
    estimate = agent.cost_value(observations)
    truth = _true_values(agent, env, snapshot, rollouts, int(rolling))
    few = len(anywhere.step)
    return Bias(summarise(estimate[:few], truth[:few]), summarise(estimate[few:], truth[few:]))


def risky(costs: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Whether any of the next ten steps of the same episode costs; all arrays are (time, member)."""
    soon, alive = costs > 0, ~ended
    for ahead in range(1, min(SOON, len(costs))):
        soon[:-ahead] |= alive[:-ahead] & (costs[ahead:] > 0)
        alive[:-ahead] &= ~ended[ahead:]
    return soon


def draw_visits(candidates: np.ndarray, count: int, rng: np.random.Generator) -> Visits:
    """`count` of the moments that are candidates, or all if there are fewer, without repetition."""
    step, member = np.nonzero(candidates)
    chosen = rng.permutation(len(step))[:count]
    return Visits(step[chosen], member[chosen])


def summarise(estimate: np.ndarray, truth: np.ndarray) -> Group:
    """Mean difference with Student's interval; the spread between states contains that of the rollouts."""
    count = len(estimate)
    if count == 0:
        nan = float("nan")
        return Group(Estimate(nan, None, None), nan, nan, 0)
    difference = estimate - truth
    mean, low, high = float(difference.mean()), None, None
    if count > 1:
        half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1) * difference.std(ddof=1) / math.sqrt(count))
        low, high = mean - half, mean + half
    return Group(Estimate(mean, low, high), float(estimate.mean()), float(truth.mean()), count)


def _watch(agent: Agent, env: CostVectorEnv, seed: int, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Costs and ends (time, member) of trajectories as long as an episode."""
    costs, ended = np.zeros(noise.shape[:2]), np.zeros(noise.shape[:2], bool)
    obs, _ = env.reset(seed=seed)
    for t, noise_t in enumerate(noise):
        obs, _, costs[t], terminated, truncated, _ = env.step(agent.act(obs, noise_t))
        ended[t] = terminated | truncated
    return costs, ended


def _revisit(
    agent: Agent, env: CostVectorEnv, seed: int, noise: np.ndarray, visits: Visits
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Live through the same trajectories again and keep snapshots of the chosen moments, in their order."""
    kept: list[tuple[np.ndarray, State]] = []
    obs, _ = env.reset(seed=seed)
    seen = np.zeros((len(visits.step), obs.shape[1]), np.float32)
    for t, noise_t in enumerate(noise[: visits.step.max() + 1]):
        which = np.flatnonzero(visits.step == t)
        if len(which):
            seen[which] = obs[visits.member[which]]
            kept.append((which, env.get_state(visits.member[which])))
        obs = env.step(agent.act(obs, noise_t))[0]
    order = np.argsort(np.concatenate([which for which, _ in kept]))
    return {name: _stack([state[name] for _, state in kept])[order] for name in kept[0][1]}, seen


def _stack(parts: list[np.ndarray]) -> np.ndarray:
    """Rows one below the other; where some are shorter (histories of a foreign environment), zeros make up for it."""
    if parts[0].ndim > 1:
        longest = max(part.shape[1] for part in parts)
        parts = [np.pad(p, [(0, 0), (0, longest - p.shape[1])] + [(0, 0)] * (p.ndim - 2)) for p in parts]
    return np.concatenate(parts)


def _true_values(agent: Agent, env: CostVectorEnv, snapshot: State, rollouts: int, seed: int) -> np.ndarray:
    """Mean discounted extrinsic cost from each row of the snapshot."""
    rows = len(next(iter(snapshot.values())))
    copies = np.repeat(np.arange(rows), rollouts)
    horizon = math.ceil(math.log(NEGLIGIBLE) / math.log(agent.gamma)) if agent.gamma > 0 else 1
    totals = []
    env.reset(seed=seed % (2**32 - env.num_envs))  # fresh generators for the futures
    for number, first in enumerate(range(0, len(copies), env.num_envs)):
        mine = copies[first : first + env.num_envs]
        filled = np.resize(mine, env.num_envs)  # the last batch may be short: its surplus is played and forgotten
        noise = _noise(agent, seed + 1 + number, horizon, env.num_envs)
        state = _other_future({name: array[filled] for name, array in snapshot.items()}, env, horizon)
        totals.append(_roll(agent, env, state, noise)[: len(mine)])
    return np.concatenate(totals).reshape(rows, rollouts).mean(axis=1)


def _other_future(state: State, env: CostVectorEnv, horizon: int) -> State:
    """The same present with enough time left and with the generators of the env's own members."""
    if "rng" in state:
        state["rng"] = env.get_state()["rng"]
    for clock in CLOCKS:
        if clock in state:
            state[clock] = np.minimum(state[clock], env.max_episode_steps - horizon - 1)
    return state


def _roll(agent: Agent, env: CostVectorEnv, state: State, noise: np.ndarray) -> np.ndarray:
    """Discounted cost of every member; V_C where a rollout is cut, nothing after it has terminated."""
    env.set_state(state)
    obs = env.observe()
    total, alive, weight = np.zeros(env.num_envs), np.ones(env.num_envs, bool), 1.0
    for noise_t in noise:
        obs, _, cost, terminated, truncated, info = env.step(agent.act(obs, noise_t))
        total += weight * alive * cost
        weight *= agent.gamma
        cut = np.flatnonzero(alive & truncated & ~terminated)
        if len(cut):
            total[cut] += weight * agent.cost_value(np.asarray(info["final_obs"])[cut])
        alive &= ~(terminated | truncated)
        if not alive.any():
            return total
    total[alive] += weight * agent.cost_value(obs[alive])
    return total


def _noise(agent: Agent, seed: int, steps: int, members: int) -> np.ndarray:
    return np.asarray(agent.policy.noise(jax.random.key(seed), (steps, members)))
