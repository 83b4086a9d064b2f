"""Random numbers inside Numba kernels: xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.

The state is four 64-bit words that the caller keeps, so that a snapshot of a task can hold its generators.
Numba's cache notices changes in a kernel's own file only: after an edit here, delete the `__pycache__`
directories of the files that call it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flashbulb.errors import UsageError

STATE_WORDS = 4
_MASK = (1 << 64) - 1


def seeded(seed: int, count: int) -> np.ndarray:
    """The states (count, 4) of the generators of seeds `seed`, `seed + 1`, ...

    Neighbours are unrelated streams, because splitmix64 hashes every bit of the seed into every word.
    """
    if seed < 0:
        raise UsageError(f"seed: {seed!r} is not allowed; it must be a whole number of at least 0.")
    words = [_splitmix64(seed + i) for i in range(count)]
    return np.array(words, dtype=np.uint64).reshape(count, STATE_WORDS)


def _splitmix64(seed: int) -> list[int]:
    words = []
    for k in range(1, STATE_WORDS + 1):
        z = (seed + k * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        words.append(z ^ (z >> 31))
    return words


@njit(cache=True)
def _rotated(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(cache=True)
def next_word(state: np.ndarray) -> np.uint64:
    """64 random bits; advances `state` (4,) in place."""
    word = _rotated(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotated(state[3], 45)
    return word


@njit(cache=True)
def uniform(state: np.ndarray, low: float, high: float) -> float:
    """A number of [low, high), from the upper 53 bits of the next word."""
    return low + (high - low) * ((next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0))
