"""Compiles the learner's Numba functions into the cache on disk, in a process of its own (`kernel_cache.py`).

`python -m flashbulb.training.compile_kernels HIDDEN_LAYERS`. What is compiled depends on the types of the arguments
and on the number of layers only, so a few rows of zeros do.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

import numpy as np

from flashbulb.algorithms.critic_fit import Settings, regress
from flashbulb.memory.neighbours import nearest_distances


def compile_kernels(hidden_layers: int) -> None:
    """Call each function as a run does."""
    sizes = (2,) * (1 + hidden_layers) + (1,)
    parameters = sum((a + 1) * b for a, b in itertools.pairwise(sizes))
    vectors, means, squares = np.zeros((3, 1, parameters), np.float32)
    observations, targets = np.zeros((2, 2), np.float32), np.zeros((1, 2), np.float32)
    for array in (observations, targets):
        array.setflags(write=False)  # as JAX's arrays are, which makes another type
    settings = Settings(np.float32(0), np.float32(0), np.float32(1))
    moments = means[0], squares[0], 0
    regress(vectors[0], *moments, sizes, observations, targets[0], np.zeros((1, 2), np.int64), settings)
    nearest_distances(np.zeros((1, 2), np.float32), np.zeros((2, 2), np.float32), 1)


def end_with_input() -> None:
    """End this process when its standard input ends."""
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    compile_kernels(int(sys.argv[1]))
