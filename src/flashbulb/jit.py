"""The options with which functions are compiled by Numba.

`jit` is for functions that Python calls: compiled once and cached on disk. `jit_helper` and `jit_inline` are for
functions that only compiled code calls: they are compiled into their callers and stay plain functions in Python, which
saves compiling and caching an entry point that is never used.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.extending import register_jitable

# Division by zero gives inf as in NumPy. None of these functions is used as a C callback.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True}
# For long sums: additions may be reordered and fused with products; infinities and NaN keep their meaning.
_SUMS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}

jit = numba.njit(**_OPTIONS, cache=True)
jit_helper = register_jitable(**_INNER)
# For functions called at least once per environment: a call that passes tuples of arrays is slow.
jit_inline = register_jitable(**_INNER, forceinline=True)

jit_fastmath = numba.njit(**_OPTIONS, **_SUMS, cache=True)
# Always inlined. A function that two others share and that is not inlined has a copy in the object file of each, and
# the linker takes the one that was loaded first. The copies' sums may be in different orders, so that results would
# depend on whether a function was just compiled or came from the cache.
jit_fastmath_inline = register_jitable(**_INNER, **_SUMS, forceinline=True)
