"""What is added to the task's cost before the critic learns it: nothing, a constant, or beta c^I.

One object per kind of cost stream, so that the training loop is the same for all: deleting a kind breaks only
the recipes that name it.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from flashbulb.config import BalanceConfig, Config, ConstantConfig, MemoryConfig
from flashbulb.memory.balance import Balance
from flashbulb.memory.flashbulb import FlashbulbMemory
from flashbulb.normaliser import Affine


class CostStream(Protocol):
    def recall(
        self, memory: FlashbulbMemory, observations: np.ndarray, costs: np.ndarray, n: int, normalise: Affine
    ) -> tuple[FlashbulbMemory, np.ndarray]:
        """Take iteration n's (time, member, ...) samples in; the memory after it, and c^I of every sample."""
        ...

    def beta(self, balance: Balance) -> float: ...

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        """beta_{n+1}."""
        ...


class Extrinsic:
    """The task's cost alone."""

    def recall(
        self, memory: FlashbulbMemory, observations: np.ndarray, costs: np.ndarray, n: int, normalise: Affine
    ) -> tuple[FlashbulbMemory, np.ndarray]:
        return memory, np.zeros_like(costs)

    def beta(self, balance: Balance) -> float:
        return 0.0

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance


class Constant:
    """A fixed constant in place of beta c^I: the ablation of the paper's Figure 6."""

    def __init__(self, config: ConstantConfig, cost_gamma: float) -> None:
        # Added to every step, x adds x / (1 - gamma) to the value.
        self.per_step = config.value * (1 - cost_gamma) if config.of == "value" else config.value

    def recall(
        self, memory: FlashbulbMemory, observations: np.ndarray, costs: np.ndarray, n: int, normalise: Affine
    ) -> tuple[FlashbulbMemory, np.ndarray]:
        return memory, np.full_like(costs, self.per_step)

    def beta(self, balance: Balance) -> float:
        return 1.0

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance


class Remembered:
    """MICE: intrinsic cost from flashbulb memory, weighed by the balancing factor."""

    def __init__(self, memory: MemoryConfig, balance: BalanceConfig, workers: int) -> None:
        self.memory_config, self.balance_config, self.workers = memory, balance, workers

    def recall(
        self, memory: FlashbulbMemory, observations: np.ndarray, costs: np.ndarray, n: int, normalise: Affine
    ) -> tuple[FlashbulbMemory, np.ndarray]:
        unsafe = costs > 0
        memory = memory.remember(observations[unsafe], n, self.memory_config)
        flat = observations.reshape(-1, observations.shape[-1])
        intrinsic, memory = memory.intrinsic_cost(flat, normalise, self.memory_config, unsafe.ravel(), self.workers)
        return memory, intrinsic.reshape(costs.shape)

    def beta(self, balance: Balance) -> float:
        return balance.beta(self.balance_config)

    def correct(self, balance: Balance, bias: np.ndarray, intrinsic: np.ndarray) -> Balance:
        return balance.correct(bias, intrinsic, self.balance_config)


def stream_for(kind: Literal["extrinsic", "memory", "constant"], config: Config, workers: int) -> CostStream:
    if kind == "memory":
        return Remembered(config.memory, config.balance, workers)
    return Constant(config.constant, config.cost_gamma) if kind == "constant" else Extrinsic()
