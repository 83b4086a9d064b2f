"""What is added to the task's cost before the critic learns it: nothing, a constant, or beta c^I.

One class per kind of cost stream, so that the training loop is the same for all.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from flashbulb.batch import Batch
from flashbulb.config import BalanceConfig, ConstantConfig, MemoryConfig
from flashbulb.errors import UsageError
from flashbulb.memory.balance import Balance
from flashbulb.memory.flashbulb_memory import FlashbulbMemory
from flashbulb.memory.resampling import LogLikelihood, OfflinePool, effective_sample_size, systematic_resample

Metrics = dict[str, float]


class CostStream(Protocol):
    def add_intrinsic_cost(
        self, memory: FlashbulbMemory, balance: Balance, batch: Batch, log_pi: LogLikelihood
    ) -> tuple[FlashbulbMemory, Batch, Metrics]:
        """Update the memory with the batch's unsafe states and fill the batch's `intrinsic` and `beta`.

        `log_pi` is the log-likelihood of actions under the policy that sampled.
        """
        ...

    def correct(self, balance: Balance, batch: Batch) -> Balance:
        """beta_{n+1}, from the batch's `cost_bias`."""
        ...


class ExtrinsicCost:
    """The task's cost alone."""

    def add_intrinsic_cost(
        self, memory: FlashbulbMemory, balance: Balance, batch: Batch, log_pi: LogLikelihood
    ) -> tuple[FlashbulbMemory, Batch, Metrics]:
        return memory, batch._replace(intrinsic=np.zeros(batch.costs.shape, np.float32), beta=0.0), {}

    def correct(self, balance: Balance, batch: Batch) -> Balance:
        return balance


class ConstantCost:
    """A fixed constant in place of beta c^I, or of c^I alone: the ablation of the paper's Figure 6."""

    def __init__(self, config: ConstantConfig, balance: BalanceConfig, cost_gamma: float) -> None:
        if balance.factor == "state":
            raise UsageError("balance.factor: 'state' is not allowed with a constant; it must be 'common'.")
        # Added to every step, x adds x / (1 - gamma) to the value.
        self.per_step = config.value * (1 - cost_gamma) if config.of == "value" else config.value
        self.balance_config = balance if config.of == "intrinsic" else None

    def add_intrinsic_cost(
        self, memory: FlashbulbMemory, balance: Balance, batch: Batch, log_pi: LogLikelihood
    ) -> tuple[FlashbulbMemory, Batch, Metrics]:
        beta = 1.0 if self.balance_config is None else balance.beta(self.balance_config)
        return memory, batch._replace(intrinsic=np.full(batch.costs.shape, self.per_step, np.float32), beta=beta), {}

    def correct(self, balance: Balance, batch: Batch) -> Balance:
        if self.balance_config is None:
            return balance
        return balance.correct(np.asarray(batch.cost_bias), batch.intrinsic, self.balance_config)


class MemoryCost:
    """MICE: intrinsic cost from flashbulb memory, weighed by the balancing factor."""

    def __init__(
        self, memory: MemoryConfig, balance: BalanceConfig, workers: int, seed: int, pool: OfflinePool | None
    ) -> None:
        self.memory_config, self.balance_config, self.workers = memory, balance, workers
        self.seed, self.pool = seed, pool

    def add_intrinsic_cost(
        self, memory: FlashbulbMemory, balance: Balance, batch: Batch, log_pi: LogLikelihood
    ) -> tuple[FlashbulbMemory, Batch, Metrics]:
        config, unsafe, metrics = self.memory_config, batch.unsafe, Metrics()
        if config.recall == "causal":
            memory = memory.update_salience(batch.observations, unsafe, batch.normalise)
            intrinsic, memory = memory.causal_cost(batch, config)
            return memory, batch._replace(intrinsic=intrinsic, beta=balance.beta(self.balance_config)), metrics
        entering = batch.observations[unsafe]
        # "From the previous iteration": what enters now counts for nothing yet, and `add` only drops what is too old.
        met = entering if config.recall == "batch" else entering[:0]
        memory = memory.add(met, batch.iteration - (config.recall == "previous"), config)
        memory = memory.update_salience(batch.observations, unsafe, batch.normalise)
        if self.pool is not None:
            memory, metrics = self._add_offline(memory, self.pool, batch.iteration, log_pi)
        intrinsic, memory = self._recall(memory, batch, stored=unsafe if config.recall == "batch" else None)
        if config.recall == "previous":
            memory = memory.add(entering, batch.iteration, config)
        return memory, batch._replace(intrinsic=intrinsic, beta=balance.beta(self.balance_config)), metrics

    def _recall(
        self, memory: FlashbulbMemory, batch: Batch, stored: np.ndarray | None
    ) -> tuple[np.ndarray, FlashbulbMemory]:
        """c^I of every state of the batch; `stored` marks those that are in the memory."""
        observations = batch.observations
        # Queries in the order of their trajectories: neighbours in time are neighbours in space.
        queries = observations.swapaxes(0, 1).reshape(-1, observations.shape[-1])
        own = None if stored is None else stored.T.ravel()
        intrinsic, memory = memory.intrinsic_cost(queries, batch.normalise, self.memory_config, own, self.workers)
        return np.ascontiguousarray(intrinsic.reshape(observations.shape[1::-1]).T), memory

    def _add_offline(
        self, memory: FlashbulbMemory, pool: OfflinePool, iteration: int, log_pi: LogLikelihood
    ) -> tuple[FlashbulbMemory, Metrics]:
        """Fill the room below the cap from the data set, but with no more states than it has."""
        weights = pool.weights(log_pi, self.memory_config.offline_clip)
        count = min(len(weights), self.memory_config.max_states - memory.size)
        rng = np.random.default_rng([self.seed, 3, iteration])  # so that a resumed run draws the same
        drawn = pool.states[systematic_resample(weights, count, rng)]
        return memory.add_offline(drawn), {"offline_ess": effective_sample_size(weights)}

    def correct(self, balance: Balance, batch: Batch) -> Balance:
        if batch.next_beta is not None:
            return balance.follow(np.asarray(batch.next_beta), self.balance_config)
        return balance.correct(np.asarray(batch.cost_bias), batch.intrinsic, self.balance_config)


class EachCost:
    """A cost stream for each of several costs: a memory, an intrinsic cost and a balancing factor each, by name.

    The streams are those of one cost, and see the part of the batch that belongs to theirs.
    """

    def __init__(self, streams: dict[str, CostStream]) -> None:
        self.streams = streams

    def add_intrinsic_cost(
        self, memory: Any, balance: Any, batch: Batch, log_pi: LogLikelihood
    ) -> tuple[Any, Batch, Metrics]:
        memories: dict[str, FlashbulbMemory] = {}
        filled: list[Batch] = []
        metrics: Metrics = {}
        for k, (name, stream) in enumerate(self.streams.items()):
            memories[name], own, about = stream.add_intrinsic_cost(
                memory[name], balance[name], batch.of_cost(k), log_pi
            )
            filled.append(own)
            metrics |= {f"{column}_{name}": value for column, value in about.items()}
        intrinsic = np.stack([own.intrinsic for own in filled], axis=-1)
        return memories, batch._replace(intrinsic=intrinsic, beta=np.array([own.beta for own in filled])), metrics

    def correct(self, balance: Any, batch: Batch) -> Any:
        return {
            name: stream.correct(balance[name], batch.of_cost(k))
            for k, (name, stream) in enumerate(self.streams.items())
        }


def unsafe_states(costs: np.ndarray, cost_to_go: np.ndarray | None, config: MemoryConfig) -> np.ndarray:
    """Which states are to be remembered, under the criterion of the paper's method or of its Discussion."""
    if config.criterion == "cost":
        return costs > 0
    assert cost_to_go is not None
    return cost_to_go > config.threshold
