"""Counters that several threads of compiled code change at once: Numba has none for processors, LLVM does.

A counter is an entry of an int64 array; every access is sequentially consistent.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # what it makes is called without its first argument
HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [args[1]])


@intrinsic
def load(typing: Any, counters: Any, k: Any) -> Any:
    """`counters[k]`"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "seq_cst", 8)

    return types.int64(counters, types.intp), generate


@intrinsic
def store(typing: Any, counters: Any, k: Any, value: Any) -> Any:
    """`counters[k] = value`"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(counters, types.intp, types.int64), generate


@intrinsic
def add(typing: Any, counters: Any, k: Any, value: Any) -> Any:
    """`counters[k] += value`; returns what was there before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(counters, types.intp, types.int64), generate


@intrinsic
def pause(typing: Any) -> Any:
    """Tell the processor that this thread is waiting in a loop, where it has an instruction for that."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), generate
