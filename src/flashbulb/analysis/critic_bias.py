"""Bias of the cost critic, V_C minus the true value, measured as in Figures 2 and 5 of the paper.

Visited states are snapshotted, each is rolled out many times under the frozen policy, and V_C there is compared with
the mean discounted extrinsic cost. Both use training's frozen normaliser and the same costs (raw, unless the critic
learned normalised ones), in a separate environment.

The true value is that of an episode without time limit. GAE bootstraps where the time limit cuts an episode, so that
is what V_C estimates; with rollouts that stopped at the limit, every late state would seem overestimated. So the
clocks of the copies are set back until the limit is out of reach. Copies share the state but not the random numbers
after it: each has noise of its own and, where the environment keeps its generators under `rng` in the snapshot, goals
and layouts of its own. (A user's environment has no clock that we could set back: there the time limit bootstraps with
V_C, as in training, and what is random within an episode is the same for all copies.) A rollout costs nothing after a
fall; with `cost_after_end mean` V_C expects some cost there, and so is higher where robots fall.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy as np

from flashbulb.analysis.evaluation import evaluation_seed
from flashbulb.analysis.fresh_episodes import FrozenAgent, play, r_squared
from flashbulb.analysis.rollout import rollout
from flashbulb.analysis.statistics import MeanInterval, student_interval
from flashbulb.envs import CostVectorEnv, State
from flashbulb.envs.base import CLOCKS

MAX_ENVS = 200  # in which states are visited and rolled out; more are not faster
STATES, ROLLOUTS = 50, 20  # a thousand episodes, as in the paper
RISKY_STEPS = 10  # a state is risky if one of the next ten steps costs
NEGLIGIBLE = 1e-3  # discount after which a rollout may stop; V_C stands in for the rest


def bias_num_envs(states: int) -> int:
    """How many environments to measure in: a few states need not be drawn from many episodes."""
    return min(MAX_ENVS, 4 * states)


class StateBias(NamedTuple):
    """Bias over some states: V_C minus the true value with its confidence interval, and the means of both."""

    bias: MeanInterval
    estimate: float
    truth: float
    states: int


class CriticBias(NamedTuple):
    all: StateBias
    risky: StateBias
    initial: StateBias  # at start states, where the authors' code measures it
    r2: float  # of V_C against the sampled returns of the fresh episodes that the states are drawn from


class Visits(NamedTuple):
    """States of trajectories, by step and environment."""

    step: np.ndarray
    env: np.ndarray


def measure_bias(
    agent: FrozenAgent, env: CostVectorEnv, seed: int, steps: int, states: int = STATES, rollouts: int = ROLLOUTS
) -> CriticBias:
    """Roll `states` visited states out `rollouts` times each: half of them drawn from all, half from the risky ones;
    and half as many start states.

    `seed` and `steps`, the run's seed and progress, determine all random numbers.
    """
    visiting, rolling, choosing = np.random.SeedSequence([evaluation_seed(seed), 5, steps]).generate_state(3)
    start = int(visiting) % (2**32 - env.num_envs)
    noise = _noise(agent, int(visiting), env.max_episode_steps, env.num_envs)
    fresh = play(agent, env, start, noise)
    rng = np.random.default_rng(int(choosing))
    first = np.zeros(fresh.costs.shape, bool)
    first[0] = True
    groups = (
        draw_visits(np.ones_like(first), states - states // 2, rng),
        draw_visits(risky(fresh.costs, fresh.ended), states // 2, rng),
        draw_visits(first, states // 2, rng),
    )
    visits = Visits(*(np.concatenate(parts) for parts in zip(*groups, strict=True)))

    snapshot, observations = _snapshot_visits(agent, env, start, noise, visits)
    estimate = agent.cost_value(observations)
    truth = _true_values(agent, env, snapshot, rollouts, int(rolling))
    ends = np.cumsum([len(group.step) for group in groups])[:-1]
    pairs = zip(np.split(estimate, ends), np.split(truth, ends), strict=True)
    anywhere, dangerous, initial = (state_bias(*pair) for pair in pairs)
    return CriticBias(anywhere, dangerous, initial, r_squared(fresh.estimate, fresh.returns))


def risky(costs: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Whether any of the next ten steps of the same episode costs; all arrays are (time, env)."""
    soon, alive = costs > 0, ~ended
    for ahead in range(1, min(RISKY_STEPS, len(costs))):
        soon[:-ahead] |= alive[:-ahead] & (costs[ahead:] > 0)
        alive[:-ahead] &= ~ended[ahead:]
    return soon


def draw_visits(candidates: np.ndarray, count: int, rng: np.random.Generator) -> Visits:
    """`count` of the candidates, or all if there are fewer, without repetition."""
    step, env = np.nonzero(candidates)
    chosen = rng.permutation(len(step))[:count]
    return Visits(step[chosen], env[chosen])


def state_bias(estimate: np.ndarray, truth: np.ndarray) -> StateBias:
    """Mean difference with Student's interval; the spread between states contains that of the rollouts."""
    if not len(estimate):
        return StateBias(student_interval(estimate), np.nan, np.nan, 0)
    return StateBias(student_interval(estimate - truth), float(estimate.mean()), float(truth.mean()), len(estimate))


def _snapshot_visits(
    agent: FrozenAgent, env: CostVectorEnv, seed: int, noise: np.ndarray, visits: Visits
) -> tuple[State, np.ndarray]:
    """Run the same trajectories again; snapshots and observations of the visits, in their order."""
    parts: list[tuple[np.ndarray, State]] = []
    obs, _ = env.reset(seed=seed)
    seen = np.zeros((len(visits.step), obs.shape[1]), np.float32)

    def snapshot(t: int, observations: np.ndarray) -> None:
        which = np.flatnonzero(visits.step == t)
        if len(which):
            seen[which] = observations[visits.env[which]]
            parts.append((which, env.get_state(visits.env[which])))

    snapshot(0, obs)
    for step in rollout(env, agent.actor(noise), obs, int(visits.step.max())):
        snapshot(step.t + 1, step.next_observations)
    order = np.argsort(np.concatenate([which for which, _ in parts]))
    return {name: _stack([state[name] for _, state in parts])[order] for name in parts[0][1]}, seen


def _stack(parts: list[np.ndarray]) -> np.ndarray:
    """Rows one below the other; shorter ones (histories of a user's environment) are padded with zeros."""
    if parts[0].ndim > 1:
        longest = max(part.shape[1] for part in parts)
        parts = [np.pad(p, [(0, 0), (0, longest - p.shape[1])] + [(0, 0)] * (p.ndim - 2)) for p in parts]
    return np.concatenate(parts)


def _true_values(agent: FrozenAgent, env: CostVectorEnv, snapshot: State, rollouts: int, seed: int) -> np.ndarray:
    """Mean discounted extrinsic cost from each row of the snapshot."""
    rows = len(next(iter(snapshot.values())))
    copies = np.repeat(np.arange(rows), rollouts)
    horizon = math.ceil(math.log(NEGLIGIBLE) / math.log(agent.gamma)) if agent.gamma > 0 else 1
    totals = []
    env.reset(seed=seed % (2**32 - env.num_envs))  # new generators for the rollouts
    for number, first in enumerate(range(0, len(copies), env.num_envs)):
        own = copies[first : first + env.num_envs]
        filled = np.resize(own, env.num_envs)  # the last batch may be short: results of its surplus are dropped
        noise = _noise(agent, seed + 1 + number, horizon, env.num_envs)
        state = _with_own_randomness({name: array[filled] for name, array in snapshot.items()}, env, horizon)
        totals.append(_discounted_costs(agent, env, state, noise)[: len(own)])
    return np.concatenate(totals).reshape(rows, rollouts).mean(axis=1)


def _with_own_randomness(state: State, env: CostVectorEnv, horizon: int) -> State:
    """The snapshot with enough time left, and with the generators that the environments have now."""
    if "rng" in state:
        state["rng"] = env.get_state()["rng"]
    for clock in CLOCKS:
        if clock in state:
            state[clock] = np.minimum(state[clock], env.max_episode_steps - horizon - 1)
    return state


def _discounted_costs(agent: FrozenAgent, env: CostVectorEnv, state: State, noise: np.ndarray) -> np.ndarray:
    """Discounted cost of every environment; V_C where a rollout is cut, nothing after it has terminated."""
    env.set_state(state)
    total, alive, weight = np.zeros(env.num_envs), np.ones(env.num_envs, bool), 1.0
    for step in rollout(env, agent.actor(noise), env.observe(), len(noise)):
        total += weight * alive * agent.cost_units(step.costs)
        weight *= agent.gamma
        cut = np.flatnonzero(alive & step.truncated & ~step.terminated)
        if len(cut):
            total[cut] += weight * agent.cost_value(np.asarray(step.info["final_obs"])[cut])
        alive &= ~step.ended
        if not alive.any():
            return total
    total[alive] += weight * agent.cost_value(step.next_observations[alive])
    return total


def _noise(agent: FrozenAgent, seed: int, steps: int, num_envs: int) -> np.ndarray:
    return np.asarray(agent.policy.noise(jax.random.key(seed), (steps, num_envs)))
