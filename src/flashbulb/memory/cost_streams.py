"""What is added to the task's cost before the critic learns it: nothing, a constant, or beta c^I.

One object per kind of cost stream, so that the training loop is the same for all: deleting a kind breaks only
the algorithms that name it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import numpy as np

from flashbulb.config import BalanceConfig, Config, ConstantConfig, MemoryConfig
from flashbulb.memory.balance import Balance
from flashbulb.memory.flashbulb_memory import FlashbulbMemory
from flashbulb.memory.resampling import LogLikelihood, OfflinePool, effective_sample_size, systematic
from flashbulb.normaliser import FrozenNormaliser


class MemoryInput(NamedTuple):
    """What an iteration's batch has to teach; arrays are (time, member, ...)."""

    observations: np.ndarray
    unsafe: np.ndarray  # those to remember
    iteration: int
    normalise: FrozenNormaliser
    log_pi: LogLikelihood  # of the policy that sampled


class MemoryResult(NamedTuple):
    """What a batch left behind and called up."""

    memory: FlashbulbMemory  # after it
    intrinsic: np.ndarray  # (time, member) c^I of every sample
    report: dict[str, float]


class CostStream(Protocol):
    def recall(self, memory: FlashbulbMemory, lesson: MemoryInput) -> MemoryResult: ...

    def beta(self, balance: Balance) -> float: ...

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        """beta_{n+1}."""
        ...


class Extrinsic:
    """The task's cost alone."""

    def recall(self, memory: FlashbulbMemory, lesson: MemoryInput) -> MemoryResult:
        return MemoryResult(memory, np.zeros(lesson.unsafe.shape, np.float32), {})

    def beta(self, balance: Balance) -> float:
        return 0.0

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance


class Constant:
    """A fixed constant in place of beta c^I: the ablation of the paper's Figure 6."""

    def __init__(self, config: ConstantConfig, cost_gamma: float) -> None:
        # Added to every step, x adds x / (1 - gamma) to the value.
        self.per_step = config.value * (1 - cost_gamma) if config.of == "value" else config.value

    def recall(self, memory: FlashbulbMemory, lesson: MemoryInput) -> MemoryResult:
        return MemoryResult(memory, np.full(lesson.unsafe.shape, self.per_step, np.float32), {})

    def beta(self, balance: Balance) -> float:
        return 1.0

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance


class MemoryCost:
    """MICE: intrinsic cost from flashbulb memory, weighed by the balancing factor."""

    def __init__(
        self, memory: MemoryConfig, balance: BalanceConfig, workers: int, seed: int, supply: OfflinePool | None
    ) -> None:
        self.memory_config, self.balance_config, self.workers = memory, balance, workers
        self.seed, self.supply = seed, supply

    def recall(self, memory: FlashbulbMemory, lesson: MemoryInput) -> MemoryResult:
        observations, unsafe = lesson.observations, lesson.unsafe
        memory = memory.remember(observations[unsafe], lesson.iteration, self.memory_config)
        memory = memory.update_salience(observations, unsafe, lesson.normalise)
        report: dict[str, float] = {}
        if self.supply is not None:
            memory, report = self._draw(memory, self.supply, lesson)
        walks = observations.swapaxes(0, 1).reshape(-1, observations.shape[-1])  # neighbours in time are so in space
        intrinsic, memory = memory.intrinsic_cost(
            walks, lesson.normalise, self.memory_config, unsafe.T.ravel(), self.workers
        )
        return MemoryResult(memory, np.ascontiguousarray(intrinsic.reshape(unsafe.T.shape).T), report)

    def _draw(
        self, memory: FlashbulbMemory, supply: OfflinePool, lesson: MemoryInput
    ) -> tuple[FlashbulbMemory, dict[str, float]]:
        """Fill the room below the cap from the data set, but with no more states than it has."""
        weights = supply.weights(lesson.log_pi, self.memory_config.offline_clip)
        count = min(len(weights), self.memory_config.max_states - memory.size)
        rng = np.random.default_rng([self.seed, 3, lesson.iteration])  # so that a resumed run draws alike
        drawn = supply.states[systematic(weights, count, rng)]
        return memory.recollect(drawn), {"offline_ess": effective_sample_size(weights)}

    def beta(self, balance: Balance) -> float:
        return balance.beta(self.balance_config)

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance.correct(bias, intrinsic, self.balance_config)


def unsafe_states(costs: np.ndarray, cost_to_go: np.ndarray | None, config: MemoryConfig) -> np.ndarray:
    """Which states are to be remembered, under the criterion of the paper's method or of its Discussion."""
    if config.criterion == "cost":
        return costs > 0
    assert cost_to_go is not None
    return cost_to_go > config.threshold


def stream_for(
    kind: Literal["extrinsic", "memory", "constant"], config: Config, workers: int, supply: OfflinePool | None = None
) -> CostStream:
    if kind == "memory":
        return MemoryCost(config.memory, config.balance, workers, config.seed, supply)
    return Constant(config.constant, config.cost_gamma) if kind == "constant" else Extrinsic()
