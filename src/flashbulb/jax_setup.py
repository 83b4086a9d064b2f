"""JAX as runs need it. To be called before anything is computed: afterwards JAX reads none of this."""

from __future__ import annotations

import os
from pathlib import Path

import jax

THREADS = "1"
FLAG = "xla_cpu_multi_thread_eigen"


def setup_jax() -> None:
    """The same results on any number of cores, and compiled updates kept between runs in the user's cache directory.

    XLA splits long sums among its threads, as many as there are cores, and so adds in another order elsewhere. Only
    NPROC decides that; we fix it unless the user does. One thread is also the fastest: operations of our size cost less
    than handing them from thread to thread, and the second core has critics to fit meanwhile (`algorithms/learner.py`).
    The flag keeps products in one thread where a user allows more, and changes no bits. Where the user has a cache for
    JAX already, it is used.
    """
    os.environ.setdefault("NPROC", THREADS)
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{FLAG}=false".strip()
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flashbulb" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
