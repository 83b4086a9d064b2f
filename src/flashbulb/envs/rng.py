"""Random generators whose states are rows of an array, so that a snapshot can hold them.

| generator | used by | drawn from |
| --- | --- | --- |
| PCG64 (`numpy.random.default_rng`) | velocity tasks | Python |
| MT19937 (`numpy.random.RandomState`) | navigation tasks, bit for bit as the original | compiled code |
| xoshiro256++ | HazardField | compiled code |

Numba's cache notices changes in a kernel's own file only: after an edit here, delete the `__pycache__` directories of
the files that call it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flashbulb.errors import UsageError
from flashbulb.jit import jit_helper, jit_inline

_MASK64 = (1 << 64) - 1


# PCG64: one NumPy generator per environment.


def pcg64_generators(seed: int, num_envs: int) -> list[np.random.Generator]:
    """Environment `i` draws from `default_rng(seed + i)`, as the original vector environments do."""
    return [np.random.default_rng(seed + i) for i in range(num_envs)]


def pack_pcg64(generators: list[np.random.Generator]) -> np.ndarray:
    """Their states as rows of six uint64: state and increment (128 bits each), then the buffered 32-bit word."""
    rows = np.zeros((len(generators), 6), np.uint64)
    for row, generator in zip(rows, generators, strict=True):
        state = generator.bit_generator.state
        position, increment = state["state"]["state"], state["state"]["inc"]
        row[:] = (
            position >> 64,
            position & _MASK64,
            increment >> 64,
            increment & _MASK64,
            state["has_uint32"],
            state["uinteger"],
        )
    return rows


def unpack_pcg64(row: np.ndarray) -> np.random.Generator:
    """The generator whose state `pack_pcg64` wrote into this row."""
    high, low, increment_high, increment_low, has_uint32, uinteger = (int(word) for word in row)
    generator = np.random.Generator(np.random.PCG64(0))
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return generator


# MT19937: NumPy's legacy RandomState. A row is the 624 words of the generator's key, then the position in it.

MT_KEY = 624
MT_WORDS = MT_KEY + 1
_MT_SHIFT = 397


def mt_seeded(seed: int) -> np.ndarray:
    """The state of `numpy.random.RandomState(seed)`."""
    state = np.random.RandomState(seed).get_state(legacy=False)["state"]
    return np.append(state["key"], np.uint32(state["pos"])).astype(np.uint32)


@jit_helper
def _mt_twist(stream: np.ndarray) -> None:
    for k in range(MT_KEY):
        after = k + 1 if k + 1 < MT_KEY else 0
        ahead = k + _MT_SHIFT if k + _MT_SHIFT < MT_KEY else k + _MT_SHIFT - MT_KEY
        y = (stream[k] & 0x80000000) | (stream[after] & 0x7FFFFFFF)
        stream[k] = stream[ahead] ^ (y >> 1) ^ ((y & 1) * 0x9908B0DF)
    stream[MT_KEY] = 0


@jit_inline
def mt_word(stream: np.ndarray) -> np.uint64:
    """32 random bits."""
    if stream[MT_KEY] >= MT_KEY:
        _mt_twist(stream)
    y = np.uint64(stream[stream[MT_KEY]])
    stream[MT_KEY] += 1
    y ^= y >> np.uint64(11)
    y ^= (y << np.uint64(7)) & np.uint64(0x9D2C5680)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    return y ^ (y >> np.uint64(18))


@jit_inline
def mt_double(stream: np.ndarray) -> float:
    """`random_sample()`; `binomial(10, 1.0)` advances the stream by the same amount."""
    high = mt_word(stream) >> np.uint64(5)
    low = mt_word(stream) >> np.uint64(6)
    return (float(high) * 67108864.0 + float(low)) / 9007199254740992.0


@jit_inline
def mt_uniform(stream: np.ndarray, low: float, width: float) -> float:
    """`uniform(low, low + width)`."""
    return low + width * mt_double(stream)


@jit_helper
def mt_choice(stream: np.ndarray, count: int) -> np.int64:
    """`choice(count)`: masked words until one is in range."""
    mask = count - 1
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> shift
    while True:
        value = np.int64(mt_word(stream)) & mask
        if value < count:
            return value


# xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64. A row is four 64-bit words.

XOSHIRO_WORDS = 4


def xoshiro_seeded(seed: int, count: int) -> np.ndarray:
    """The states (count, 4) of the generators of seeds `seed`, `seed + 1`, ...

    Consecutive seeds give unrelated streams, because splitmix64 hashes every bit of the seed into every word.
    """
    if seed < 0:
        raise UsageError(f"seed: {seed!r} is not allowed; it must be a whole number of at least 0.")
    words = [_splitmix64(seed + i) for i in range(count)]
    return np.array(words, dtype=np.uint64).reshape(count, XOSHIRO_WORDS)


def _splitmix64(seed: int) -> list[int]:
    words = []
    for k in range(1, XOSHIRO_WORDS + 1):
        z = (seed + k * 0x9E3779B97F4A7C15) & _MASK64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
        words.append(z ^ (z >> 31))
    return words


@njit(cache=True)
def _rotated(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(cache=True)
def xoshiro_word(state: np.ndarray) -> np.uint64:
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
def xoshiro_uniform(state: np.ndarray, low: float, high: float) -> float:
    """A number in [low, high), from the upper 53 bits of the next word."""
    return low + (high - low) * ((xoshiro_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0))
