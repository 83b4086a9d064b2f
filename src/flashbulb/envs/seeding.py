"""One PCG64 generator per member, and their states as rows of an array."""

from __future__ import annotations

import numpy as np

_LOW = (1 << 64) - 1


def seeded(seed: int, num_envs: int) -> list[np.random.Generator]:
    """Member `i` draws from `default_rng(seed + i)`, as the original vector environments do."""
    return [np.random.default_rng(seed + i) for i in range(num_envs)]


def pack(generators: list[np.random.Generator]) -> np.ndarray:
    """Their states as rows of six uint64: position and increment (128 bits each), then the spare half word."""
    rows = np.zeros((len(generators), 6), np.uint64)
    for row, generator in zip(rows, generators, strict=True):
        state = generator.bit_generator.state
        position, increment = state["state"]["state"], state["state"]["inc"]
        row[:] = (
            position >> 64,
            position & _LOW,
            increment >> 64,
            increment & _LOW,
            state["has_uint32"],
            state["uinteger"],
        )
    return rows


def unpack(row: np.ndarray) -> np.random.Generator:
    """The generator whose state `pack` wrote into this row."""
    high, low, increment_high, increment_low, has_uint32, uinteger = (int(word) for word in row)
    generator = np.random.Generator(np.random.PCG64(0))
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return generator
