"""The one container that an iteration's samples travel in, from the environment to the row of metrics.

Arrays are (time, env, ...); those of a cost have one more axis, the last, if there are several costs. Each stage fills
the fields that it knows, by name, and leaves the others alone:
`training/collect.py` samples, `memory/cost_streams.py` adds the intrinsic cost, `algorithms/advantages.py` and
`algorithms/learner.py` add what the update needs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flashbulb.normaliser import FrozenNormaliser

Array = Any  # of JAX or of NumPy


class FinishedEpisodes(NamedTuple):
    """The episodes that ended in a batch, a row each."""

    step: np.ndarray  # vector step within the batch at which each ended
    env: np.ndarray
    returns: np.ndarray
    costs: np.ndarray  # (episodes,), or (episodes, K) of several costs
    lengths: np.ndarray


class EpisodeMeans(NamedTuple):
    """Means over the episodes that ended in this batch, and over no older ones."""

    returns: float
    cost: Any  # J_C(pi_k), undiscounted: a number, or (K,)
    length: float
    estimated: bool  # no episode ended: extrapolated from the running ones
    cost_error: Any = 0.0  # standard error of `cost`


class ActorBatch(NamedTuple):
    """What an actor's step needs, a row per sampled state."""

    observations: Array  # normalised
    actions: Array
    log_prob: Array  # under the policy that sampled
    reward_advantage: Array  # standardised
    cost_advantage: Array  # A_C^EI, centred; (states, K) of several costs


class Constraint(NamedTuple):
    """How the step has to respect the cost limit; (K,) each with several costs."""

    excess: Array  # () J_C + I - d, per episode
    c: Array  # () the same in the units of the step's linear model
    multiplier: Array  # () lambda


class Batch(NamedTuple):
    """Transitions, and what is known about them so far."""

    # From collection.
    iteration: int
    observations: Array  # (time, env, n) raw
    next_observations: Array  # the final observation where an episode ended
    actions: Array  # as the policy sampled them
    rewards: Array
    costs: Array  # extrinsic
    terminated: Array
    ended: Array  # terminated or truncated
    normalise: FrozenNormaliser  # under which the policy sampled
    episodes: Any = None  # FinishedEpisodes
    means: Any = None  # EpisodeMeans
    learned_costs: Array = None  # extrinsic in the critic's units; None: raw
    # From the cost stream.
    unsafe: Array = None  # (time, env) states to remember
    intrinsic: Array = None  # (time, env) c^I
    beta: Array = None  # () balancing factor, or (env,)
    # From the estimates.
    cost_bias: Array = None  # (time, env) eps_n: V_C minus what was sampled
    next_beta: Array = None  # (env,) the factor after the batch, where states have factors of their own
    actor: Any = None  # ActorBatch
    critic_targets: Array = None  # (critics, states)
    constraint: Any = None  # Constraint

    @property
    def size(self) -> int:
        """Transitions in the batch."""
        return math.prod(np.shape(self.costs)[:2])

    @property
    def several_costs(self) -> bool:
        """Whether arrays of a cost have an axis over several."""
        return np.ndim(self.costs) == 3

    def of_cost(self, k: int) -> Batch:
        """The batch with what belongs to one of several costs, as a batch with one cost has it."""
        names = ("costs", "unsafe", "intrinsic", "beta", "cost_bias")
        known: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        own: dict[str, Any] = {name: np.asarray(array)[..., k] for name, array in known.items()}
        return self._replace(**own)

    @property
    def cost_sums(self) -> Any:
        """The sum of all costs of the batch, or of each of several."""
        axes = (0, 1) if self.several_costs else None
        return self.costs.sum(axis=axes, dtype=np.float64)
