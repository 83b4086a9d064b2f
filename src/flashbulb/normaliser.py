"""Running mean and variance of observations, by which every network and the memory see them.

The statistics are frozen while an iteration samples and learns, and absorb its batch afterwards. So the
policy that is improved is exactly the policy that sampled, and both sides of a comparison with the memory
are seen alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

CLIP = 10.0  # standard deviations; beyond it lies nothing that a tanh network could tell apart


class Normaliser(NamedTuple):
    seen: np.ndarray  # () observations so far
    mean: np.ndarray  # (n,)
    variance: np.ndarray  # (n,)

    @classmethod
    def empty(cls, dimensions: int) -> Normaliser:
        return cls(np.zeros(()), np.zeros(dimensions), np.ones(dimensions))

    def absorb(self, observations: np.ndarray) -> Normaliser:
        """Pool with a batch's moments (Chan, Golub and LeVeque's parallel update)."""
        x = np.asarray(observations, dtype=np.float64).reshape(-1, self.mean.shape[0])
        seen = self.seen + len(x)
        shift = x.mean(axis=0) - self.mean
        squares = self.variance * self.seen + x.var(axis=0) * len(x) + shift**2 * (self.seen * len(x) / seen)
        return Normaliser(seen, self.mean + shift * (len(x) / seen), squares / seen)

    @property
    def scale(self) -> np.ndarray:
        """Reciprocal standard deviation; 1 for an entry that has never varied, so that it stays harmless."""
        varies = self.variance > 1e-12
        return np.where(varies, 1.0 / np.sqrt(np.where(varies, self.variance, 1.0)), 1.0)

    def frozen(self) -> FrozenNormaliser:
        """The two float32 vectors that networks need."""
        return FrozenNormaliser(self.mean.astype(np.float32), self.scale.astype(np.float32))


class FrozenNormaliser(NamedTuple):
    """A frozen normaliser: the same arithmetic for NumPy and for JAX arrays."""

    mean: Any
    scale: Any

    def __call__(self, observations: Any, /) -> Any:
        return ((observations - self.mean) * self.scale).clip(-CLIP, CLIP)
