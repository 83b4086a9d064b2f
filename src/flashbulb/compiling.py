"""The ways in which functions are compiled here. Compiled code is kept on disk and lets go of Python's lock."""

from __future__ import annotations

from typing import Any

import numba

# A division by zero gives inf as in NumPy; nobody wants these functions as C callbacks.
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}

compiled = numba.njit(**_OPTIONS)
# For what is called once per member or more often: calls cost time where they pass tuples of arrays.
inlined = numba.njit(**_OPTIONS, forceinline=True)
# For long sums: they may be reordered and products fused; infinities and what is not a number stay what they are.
_SUMS = {"reassoc", "contract", "nsz"}
summing = numba.njit(**_OPTIONS, fastmath=_SUMS)
summing_inlined = numba.njit(**_OPTIONS, fastmath=_SUMS, forceinline=True)
