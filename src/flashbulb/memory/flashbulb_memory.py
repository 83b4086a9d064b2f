"""Flashbulb memory: the unsafe states of recent iterations, and how near a state is to them (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flashbulb.batch import Batch
from flashbulb.config import MemoryConfig
from flashbulb.memory.causal import causal_distances, queue_after
from flashbulb.memory.cost_scale import absorb, divisor, start_statistics
from flashbulb.memory.intrinsic_cost import pseudo_count, pseudo_count_cost, rescale
from flashbulb.memory.neighbours import nearest_distances
from flashbulb.memory.salience import salience, sort_lidars
from flashbulb.normaliser import FrozenNormaliser

Memories = Any  # a FlashbulbMemory, or with several costs one for each by its name
OFFLINE = np.iinfo(np.int64).min  # the "iteration" of a state that no iteration met


class FlashbulbMemory(NamedTuple):
    """Raw observations, so that old and new states always meet under today's normalisation."""

    states: np.ndarray  # (M, n) raw unsafe observations, oldest first
    iterations: np.ndarray  # (M,) when each was met
    projection: np.ndarray  # (features, m) the fixed Gaussian matrix of f, or (features, 0) for no projection
    mean_squared_distance: np.ndarray  # () running mean of the k-nearest l^2 (NGU's normalisation)
    lidar_groups: np.ndarray = np.zeros((0, 2), np.int64)  # (G, 2) first and end of the entries of each lidar
    salience: np.ndarray = np.zeros(0, np.float32)  # (features,) weights of the salient view, or (0,) for the plain one
    envs: Any = ()  # (M,) where each was met, if every environment has a memory of its own
    cost_statistics: Any = ()  # (4,) of c^I (`cost_scale.py`), if it is scaled by one of them

    @classmethod
    def empty(
        cls,
        dimensions: int,
        config: MemoryConfig,
        rng: np.random.Generator,
        lidar_groups: Iterable[tuple[int, int]] = (),
        features: int | None = None,
    ) -> FlashbulbMemory:
        """For observations with so many entries, of which a normaliser makes `features` (default: as many)."""
        # Scaled by 1/sqrt(m), a Gaussian matrix keeps squared distances in the mean (Johnson-Lindenstrauss).
        m, seen = config.embedding, dimensions if features is None else features
        projection = rng.standard_normal((seen, m)) / np.sqrt(max(m, 1))
        return cls(
            np.zeros((0, dimensions), np.float32),
            np.zeros(0, np.int64),
            projection.astype(np.float32),
            np.zeros(()),
            np.array(list(lidar_groups), np.int64).reshape(-1, 2),
            np.ones(seen if config.view == "salient" else 0, np.float32),
            np.zeros(0, np.int64) if config.recall == "causal" else (),
            start_statistics(config.normalise),
        )

    @property
    def size(self) -> int:
        return len(self.states)

    def add(self, unsafe: np.ndarray, iteration: int, config: MemoryConfig) -> FlashbulbMemory:
        """Add this iteration's unsafe states; drop those outside the window, then the oldest beyond the cap.

        The capacity is thus whatever the window produced, up to the hard cap. States of a data set are dropped as
        well, because they are drawn anew in every iteration (`add_offline`).
        """
        states = np.concatenate([self.states, np.asarray(unsafe, np.float32)])
        iterations = np.concatenate([self.iterations, np.full(len(unsafe), iteration, np.int64)])
        kept = np.flatnonzero(iterations > iteration - config.window)[-config.max_states :]
        return self._replace(states=states[kept], iterations=iterations[kept])

    def add_to_queues(self, batch: Batch, config: MemoryConfig) -> FlashbulbMemory:
        """Add a batch's unsafe states to the queues of their environments, which keep the newest ones."""
        step, env = np.nonzero(batch.unsafe)
        states = np.concatenate([self.states, batch.observations[step, env]])
        envs = np.concatenate([self.envs, env])
        iterations = np.concatenate([self.iterations, np.full(len(env), batch.iteration, np.int64)])
        kept = queue_after(envs, config.queue)
        return self._replace(states=states[kept], iterations=iterations[kept], envs=envs[kept])

    def add_offline(self, drawn: np.ndarray) -> FlashbulbMemory:
        """Put states of a data set before those that were met; the caller respects the cap."""
        iterations = np.full(len(drawn), OFFLINE, np.int64)
        return self._replace(
            states=np.concatenate([np.asarray(drawn, np.float32), self.states]),
            iterations=np.concatenate([iterations, self.iterations]),
        )

    def update_salience(
        self, observations: np.ndarray, unsafe: np.ndarray, normalise: FrozenNormaliser
    ) -> FlashbulbMemory:
        """Reweigh the entries by how well they tell the unsafe states of a batch (..., n), if the view is salient."""
        if not self.salience.size:
            return self
        return self._replace(
            salience=salience(sort_lidars(normalise(observations), self.lidar_groups), unsafe, self.salience)
        )

    def embed(self, observations: np.ndarray, normalise: FrozenNormaliser) -> np.ndarray:
        """f(s): today's normalisation, the salient view if that is wanted, then the random projection."""
        normalised = normalise(observations)
        if self.salience.size:
            normalised = sort_lidars(normalised, self.lidar_groups) * self.salience
        return normalised @ self.projection if self.projection.shape[1] else normalised

    def intrinsic_cost(
        self,
        observations: np.ndarray,
        normalise: FrozenNormaliser,
        config: MemoryConfig,
        stored: np.ndarray | None = None,
        workers: int = 1,
    ) -> tuple[np.ndarray, FlashbulbMemory]:
        """c^I of every observation (B, n), and the memory with its running distance brought up to date.

        `stored` (B,) marks observations that are entries of the memory themselves; with `exclude_self`
        their own entry, at distance 0, does not count. With an empty memory c^I is 0.
        """
        if self.size == 0:
            return np.zeros(len(observations), np.float32), self
        return self.cost_of_distances(self.squared_distances(observations, normalise, config, stored, workers), config)

    def cost_of_distances(self, squared: np.ndarray, config: MemoryConfig) -> tuple[np.ndarray, FlashbulbMemory]:
        """c^I of states with these k-nearest l^2 (B, k), and the memory with its running statistics brought up to
        date."""
        finite = squared[np.isfinite(squared)]
        mean = float(finite.mean()) if finite.size else 0.0
        # NGU's running mean; the first batch starts it.
        old = float(self.mean_squared_distance)
        running = mean if old == 0.0 else 0.99 * old + 0.01 * mean
        memory = self._replace(mean_squared_distance=np.asarray(running))
        squared = rescale(squared, config.distance, running)
        if config.normalise == "sqrt-k":
            return pseudo_count_cost(squared, config.neighbours, config.xi, config.kernel).astype(np.float32), memory
        cost = np.sqrt(pseudo_count(squared, config.xi, config.kernel))
        if config.normalise != "none":
            memory = memory._replace(cost_statistics=absorb(self.cost_statistics, cost))
            cost = cost / divisor(memory.cost_statistics, config.normalise)
        return cost.astype(np.float32), memory

    def causal_cost(self, batch: Batch, config: MemoryConfig) -> tuple[np.ndarray, FlashbulbMemory]:
        """c^I of a batch (time, env) from what each environment's queue held at that time (`causal.py`), and the
        memory after it."""
        past = self.embed(self.states, batch.normalise)
        queries = self.embed(batch.observations, batch.normalise)
        sizes = config.neighbours, config.queue, not config.exclude_self
        squared = [
            causal_distances(queries[:, env], batch.unsafe[:, env], past[self.envs == env], *sizes)
            for env in range(queries.shape[1])
        ]
        cost, memory = self.cost_of_distances(np.concatenate(squared), config)
        cost = np.ascontiguousarray(cost.reshape(batch.unsafe.T.shape).T)
        return cost, memory.add_to_queues(batch, config)

    def squared_distances(
        self,
        observations: np.ndarray,
        normalise: FrozenNormaliser,
        config: MemoryConfig,
        stored: np.ndarray | None,
        workers: int,
    ) -> np.ndarray:
        """l^2 to the k nearest stored states (B, k), infinite where the memory has fewer than k."""
        drop_self = config.exclude_self and stored is not None
        states, asked = self.embed(self.states, normalise), self.embed(observations, normalise)
        squared = nearest_distances(states, asked, config.neighbours + drop_self, workers)
        if drop_self:
            squared = np.where(np.asarray(stored)[:, None], squared[:, 1:], squared[:, :-1])
        return squared
