"""JAX as runs need it. To be called before anything is computed: afterwards JAX reads no flags."""

from __future__ import annotations

import os
from pathlib import Path

import jax

SINGLE_THREADED = "--xla_cpu_multi_thread_eigen=false"


def prepare_jax() -> None:
    """Keep compiled updates between runs, in the user's cache directory; one thread per matrix product.

    Products split over threads may add up in another order on another number of cores. Ours are too small to gain
    from it anyway.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {SINGLE_THREADED}".strip()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flashbulb" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
