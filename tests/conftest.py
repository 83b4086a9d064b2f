"""What all tests share: programs that JAX compiled once, in this process or in any that a test starts."""

import os
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flashbulb" / "jax-tests"

# Before JAX is imported, and inherited by the workers of xdist and the processes of tests. The key of an entry is the
# program itself, so a change of the code is compiled anew and an old entry hides nothing.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
