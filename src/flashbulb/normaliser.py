"""What networks and the memory see of an observation: its entries over their running mean and deviation.

The statistics are frozen while an iteration samples and learns, and absorb its batch afterwards. So the
policy that is improved is exactly the policy that sampled, and both sides of a comparison with the memory
are seen alike.

Lidar readings can be seen a second time, on a scale for what is near (`Config.near_lidar`). A reading falls linearly
from 1 at the agent to 0 at three metres, and a hazard costs within 0.2 m of its centre, where it reads 0.93 or more.
Standardised, 0.93 and 0.90 are nearly the same, so a cost critic that sees nothing else hardly knows which states cost
(docs/staying_under_the_limit.md, "Near things").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

CLIP = 10.0  # standard deviations; beyond it lies nothing that a tanh network could tell apart
NEAR = 0.05  # share of a lidar's range within which the second copy of its readings falls by a factor of e


class Normaliser(NamedTuple):
    seen: np.ndarray  # () observations so far
    mean: np.ndarray  # (n + w,)
    variance: np.ndarray  # (n + w,)
    near: Any = ()  # (w,) entries of an observation that are seen a second time, if there are any

    @classmethod
    def empty(cls, dimensions: int, near: Any = ()) -> Normaliser:
        """For observations with so many entries."""
        size = dimensions + len(near)
        return cls(np.zeros(()), np.zeros(size), np.ones(size), near)

    @property
    def features(self) -> int:
        """How many numbers a network sees."""
        return len(self.mean)

    def absorb(self, observations: np.ndarray) -> Normaliser:
        """Pool with a batch's moments (Chan, Golub and LeVeque's parallel update)."""
        rows = np.asarray(observations, dtype=np.float64).reshape(-1, self.features - len(self.near))
        x = with_near(rows, self.near)
        seen = self.seen + len(x)
        shift = x.mean(axis=0) - self.mean
        squares = self.variance * self.seen + x.var(axis=0) * len(x) + shift**2 * (self.seen * len(x) / seen)
        return self._replace(seen=seen, mean=self.mean + shift * (len(x) / seen), variance=squares / seen)

    @property
    def scale(self) -> np.ndarray:
        """Reciprocal standard deviation; 1 for an entry that has never varied, so that it stays harmless."""
        varies = self.variance > 1e-12
        return np.where(varies, 1.0 / np.sqrt(np.where(varies, self.variance, 1.0)), 1.0)

    def frozen(self) -> FrozenNormaliser:
        """What networks need of it, in single precision."""
        return FrozenNormaliser(self.mean.astype(np.float32), self.scale.astype(np.float32), self.near)


class FrozenNormaliser(NamedTuple):
    """A frozen normaliser: the same arithmetic for NumPy and for JAX arrays."""

    mean: Any
    scale: Any
    near: Any = ()

    def fits(self, dimensions: int) -> bool:
        """Whether it is one for observations with so many entries; a file of somebody else's may say anything."""
        near = np.asarray(self.near, None if len(self.near) else np.int64)
        inside = near.ndim == 1 and near.dtype.kind in "iu" and bool(((near >= 0) & (near < dimensions)).all())
        return inside and np.shape(self.mean) == np.shape(self.scale) == (dimensions + len(near),)

    def __call__(self, observations: Any, /) -> Any:
        return ((with_near(observations, self.near) - self.mean) * self.scale).clip(-CLIP, CLIP)


def with_near(observations: Any, near: Any) -> Any:
    """Observations (..., n), and after them exp((x - 1) / NEAR) of the entries `near`, at most 1."""
    if len(near) == 0:
        return observations
    numbers = observations.__array_namespace__()  # NumPy's or JAX's
    beyond = numbers.minimum(observations[..., near] - 1, 0)
    return numbers.concat([observations, numbers.exp(beyond / NEAR)], axis=-1)


def near_entries(lidar_groups: Any, wanted: bool) -> Any:
    """The entries of all lidars (first, end) if they are to be seen a second time; else, or without a lidar, none."""
    entries = [entry for first, end in lidar_groups for entry in range(first, end)]
    return np.array(entries, np.int64) if wanted and entries else ()


def with_near_groups(lidar_groups: Any, dimensions: int, near: Any) -> list[tuple[int, int]]:
    """Where the lidars are in what a network sees: those of the observation, then their second copies."""
    found, at = [(int(first), int(end)) for first, end in lidar_groups], dimensions
    if len(near) == 0:
        return found
    for first, end in list(found):
        found.append((at, at + end - first))
        at += end - first
    return found
