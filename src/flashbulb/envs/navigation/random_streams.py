"""NumPy's legacy `RandomState` inside compiled code, bit for bit: MT19937 and the three draws the tasks use.

A stream is one row of 625 words: the 624 of the generator's key, then the position in it. So a batch's
generators are one array that can be copied, sliced and stored like any other.
"""

from __future__ import annotations

import numpy as np

from flashbulb.jit import jit_helper, jit_inline

WORDS = 624
STREAM = WORDS + 1
_SHIFT = 397


@jit_inline
def copy(source: np.ndarray, target: np.ndarray, count: int) -> None:
    """`target[:count] = source[:count]`, which takes the compiler seconds where it stands in full."""
    for k in range(count):
        target[k] = source[k]


def seeded(seed: int) -> np.ndarray:
    """The stream of `numpy.random.RandomState(seed)`."""
    state = np.random.RandomState(seed).get_state(legacy=False)["state"]
    return np.append(state["key"], np.uint32(state["pos"])).astype(np.uint32)


@jit_helper
def _twist(stream: np.ndarray) -> None:
    for k in range(WORDS):
        after = k + 1 if k + 1 < WORDS else 0
        ahead = k + _SHIFT if k + _SHIFT < WORDS else k + _SHIFT - WORDS
        y = (stream[k] & 0x80000000) | (stream[after] & 0x7FFFFFFF)
        stream[k] = stream[ahead] ^ (y >> 1) ^ ((y & 1) * 0x9908B0DF)
    stream[WORDS] = 0


@jit_inline
def next_word(stream: np.ndarray) -> np.uint64:
    """32 random bits."""
    if stream[WORDS] >= WORDS:
        _twist(stream)
    y = np.uint64(stream[stream[WORDS]])
    stream[WORDS] += 1
    y ^= y >> np.uint64(11)
    y ^= (y << np.uint64(7)) & np.uint64(0x9D2C5680)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    return y ^ (y >> np.uint64(18))


@jit_inline
def next_double(stream: np.ndarray) -> float:
    """`random_sample()`; also what `binomial(10, 1.0)` consumes."""
    high = next_word(stream) >> np.uint64(5)
    low = next_word(stream) >> np.uint64(6)
    return (float(high) * 67108864.0 + float(low)) / 9007199254740992.0


@jit_inline
def uniform(stream: np.ndarray, low: float, width: float) -> float:
    """`uniform(low, low + width)`."""
    return low + width * next_double(stream)


@jit_helper
def choice(stream: np.ndarray, count: int) -> np.int64:
    """`choice(count)`: masked words until one is in range."""
    mask = count - 1
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> shift
    while True:
        value = np.int64(next_word(stream)) & mask
        if value < count:
            return value
