"""The ways in which functions are compiled here.

What Python calls is compiled once and kept on disk. What only compiled code calls becomes part of its callers; to
Python it is a plain function, and saves the time it takes to compile and keep an entry that nobody uses.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.extending import register_jitable

# A division by zero gives inf as in NumPy; nobody wants these functions as C callbacks.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True}
# For long sums: they may be reordered and products fused; infinities and what is not a number stay what they are.
_SUMS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}

jit = numba.njit(**_OPTIONS, cache=True)
jit_helper = register_jitable(**_INNER)
# For what is called once per member or more often: calls cost time where they pass tuples of arrays.
jit_inline = register_jitable(**_INNER, forceinline=True)

jit_fastmath = numba.njit(**_OPTIONS, **_SUMS, cache=True)
jit_fastmath_helper = register_jitable(**_INNER, **_SUMS)
jit_fastmath_inline = register_jitable(**_INNER, **_SUMS, forceinline=True)
