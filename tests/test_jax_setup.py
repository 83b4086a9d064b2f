"""Results do not depend on the number of cores."""

import os

import numpy as np
import pytest

from tests.training.killing import PROCESSES


def sum_on(cores, path):
    os.sched_setaffinity(0, cores)
    from flashbulb.jax_setup import setup_jax

    setup_jax()
    import jax

    jax.config.update("jax_enable_compilation_cache", False)  # or the second process would run the first one's program
    x = np.random.default_rng(0).standard_normal((20_000, 60)).astype(np.float32)
    np.save(path, jax.jit(lambda x: x.T @ (x * x.sum(0)))(x))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to compare with one")
def test_sums_are_the_same_on_one_core_and_on_two(tmp_path):
    """Long sums are what XLA splits among threads; without `setup_jax` these two differ."""
    cores = sorted(os.sched_getaffinity(0))
    for count in (1, 2):
        process = PROCESSES.Process(target=sum_on, args=(cores[:count], tmp_path / f"{count}.npy"))
        process.start()
        process.join(60)
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "2.npy").read_bytes()
