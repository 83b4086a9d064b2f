"""MuJoCo called from compiled code: `mj_step` for the rows of a batch, by several threads.

A robot that has `Dynamics` of its own is moved by those where possible.

`mujoco.rollout` does nearly the same, but its threads sleep between two calls, and waking them takes as long as a step
of HalfCheetah; and it returns only states and sensors, the latter one substep late. Here a worker thread waits actively
for a short time after its work is done, the next row goes to the first free thread, and any MjData field can be read
after the last substep. Measurements are in docs/performance.md.

A row of the arrays is all there is to an environment: MjData is scratch memory of a thread and keeps nothing between
steps. So a result depends neither on the number of threads nor on an environment's place in the batch.
"""

from __future__ import annotations

import ctypes
import platform
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import mujoco
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from flashbulb.envs.simulator import FULL_PHYSICS, After, Dynamics, StepPlan, without_sensors
from flashbulb.jit import jit, jit_helper


def _library() -> ctypes.CDLL:
    """The shared library that MuJoCo's Python package has loaded; its file name depends on the system."""
    folder = Path(mujoco.__file__).parent
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("libmujoco.", "mujoco.dll")):
            return ctypes.CDLL(str(path))
    raise ImportError(f"MuJoCo's library was not found in {folder}; install the mujoco package from a wheel.")


def _imported(name: str, function: Any, *arguments: types.Type) -> Any:
    """A C function that compiled code can call, registered with LLVM under a unique name."""
    unique = f"flashbulb_{name}"
    llvm.add_symbol(unique, ctypes.cast(function, ctypes.c_void_p).value)
    return types.ExternalFunction(unique, types.void(*arguments))


_mujoco, _address, _numbers = _library(), types.intp, types.CPointer(types.float64)
_step = _imported("mj_step", _mujoco.mj_step, _address, _address)
_forward = _imported("mj_forward", _mujoco.mj_forward, _address, _address)
_contact_forces = _imported("mj_rnePostConstraint", _mujoco.mj_rnePostConstraint, _address, _address)
_set_state = _imported("mj_setState", _mujoco.mj_setState, _address, _address, _numbers, types.intc)
_get_state = _imported("mj_getState", _mujoco.mj_getState, _address, _address, _numbers, types.intc)
_copy = _imported("memmove", ctypes.memmove, _address, _address, types.intp)


# Counters that several threads change at once: entries of an int64 array, every access sequentially consistent. Numba
# has no such operations for CPUs, LLVM does.

intrinsic: Any = _intrinsic  # the functions it makes are called without their first argument
HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [args[1]])


@intrinsic
def atomic_load(typing: Any, counters: Any, k: Any) -> Any:
    """`counters[k]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "seq_cst", 8)

    return types.int64(counters, types.intp), generate


@intrinsic
def atomic_store(typing: Any, counters: Any, k: Any, value: Any) -> Any:
    """`counters[k] = value`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(counters, types.intp, types.int64), generate


@intrinsic
def atomic_add(typing: Any, counters: Any, k: Any, value: Any) -> Any:
    """`counters[k] += value`; returns the value before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(counters, types.intp, types.int64), generate


@intrinsic
def spin_pause(typing: Any) -> Any:
    """Tell the processor that this thread waits in a loop, if it has an instruction for that."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _call_step(
    typing: Any, function: Any, one: Any, other: Any, state: Any, control: Any, substeps: Any, readings: Any
) -> Any:
    """Call the function of a `Dynamics`; all arguments but `substeps` are addresses."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, pointer = ir.IntType(64), ir.PointerType(ir.IntType(8))
        kinds = [number if k == 5 else pointer for k in range(1, 7)]
        kind = ir.FunctionType(number, kinds)
        values = [arg if k == 5 else builder.inttoptr(arg, pointer) for k, arg in enumerate(args[1:], 1)]
        return builder.call(builder.inttoptr(args[0], ir.PointerType(kind)), values)

    return types.int64(*[types.int64] * 7), generate


class Rows(NamedTuple):
    """The arrays of the batch. `indices` and `controls` belong to one call: its first `count` rows are used."""

    states: np.ndarray  # (n, size of FULL_PHYSICS)
    warmstarts: np.ndarray  # (n, nv): start values of the constraint solver
    readings: np.ndarray  # (n, ...): fields of MjData after the step, one after the other
    indices: np.ndarray  # (n,)
    controls: np.ndarray  # (n, control_rows, size of control_spec)


class ThreadScratch(NamedTuple):
    """The memory in which one thread works: addresses in its MjData."""

    model: int
    silent: int  # the same model with its sensors off
    data: int
    warmstart: np.ndarray  # (nv,)
    fields: np.ndarray  # (fields, 2): address and bytes
    dynamics: int  # address of the function that moves the robot in place of MuJoCo; 0 for none
    memory: tuple[int, int]  # of that function


# A worker thread goes to sleep after so many looks at the counter, about 0.3 ms.
SPIN_LIMIT = 15_000 if HAS_PAUSE else 250_000
# Counters, each in its own cache line: rows that no thread has taken yet, and rows that are done.
_LEFT, _DONE, _COUNTERS = 0, 16, 32


@jit_helper
def _step_env(row: int, rows: Rows, scratch: ThreadScratch, plan: StepPlan) -> None:
    """One step of the environment in this row of the call."""
    i = rows.indices[row]
    model, data, state, warmstart = scratch.model, scratch.data, rows.states[i], rows.warmstarts[i]
    if scratch.dynamics and plan.substeps:
        control, readings = rows.controls[row, 0].ctypes.data, rows.readings[i].ctypes.data
        one, other = scratch.memory
        if _call_step(scratch.dynamics, one, other, state.ctypes.data, control, plan.substeps, readings):
            return
    _set_state(model, data, state.ctypes, FULL_PHYSICS)
    for k in range(len(warmstart)):
        scratch.warmstart[k] = warmstart[k]
    for k in range(max(plan.substeps, 1)):
        if k < rows.controls.shape[1]:
            _set_state(model, data, rows.controls[row, k].ctypes, plan.control_spec)
        if plan.substeps:
            _step(scratch.silent, data)
    _get_state(model, data, state.ctypes, FULL_PHYSICS)
    if plan.carry_warmstart:
        for k in range(len(warmstart)):
            warmstart[k] = scratch.warmstart[k]
    if plan.after == After.FORCES:
        _contact_forces(model, data)
    elif plan.after == After.SENSORS:
        _forward(model, data)
    target = rows.readings[i].ctypes.data
    for k in range(len(scratch.fields)):
        _copy(target, scratch.fields[k, 0], scratch.fields[k, 1])
        target += scratch.fields[k, 1]


@jit_helper
def _take_rows(counters: np.ndarray, rows: tuple, scratch: tuple, plan: tuple) -> None:
    """Step rows until none is left. The counter runs down to zero, so a late thread finds nothing to do and never
    takes a row of another call."""
    while True:
        left = atomic_add(counters, _LEFT, -1)
        if left <= 0:
            return
        _step_env(left - 1, Rows(*rows), ThreadScratch(*scratch), StepPlan(*plan))
        atomic_add(counters, _DONE, 1)


@jit
def _offer(counters: np.ndarray, count: int) -> None:
    """Let the worker threads take rows."""
    atomic_store(counters, _DONE, 0)
    atomic_store(counters, _LEFT, count)


@jit
def _run_call(counters: np.ndarray, rows: tuple, scratch: tuple, plan: tuple) -> None:
    """The calling thread's part of a step."""
    _take_rows(counters, rows, scratch, plan)


@jit
def _run_worker(counters: np.ndarray, rows: tuple, scratch: tuple, plan: tuple) -> None:
    """A worker thread's part: wait actively for rows, and return after SPIN_LIMIT looks without any."""
    idle = 0
    while idle < SPIN_LIMIT:
        if atomic_load(counters, _LEFT) > 0:
            _take_rows(counters, rows, scratch, plan)
            idle = 0
        idle += 1
        spin_pause()


@jit
def _all_done(counters: np.ndarray, count: int) -> bool:
    """Wait actively for rows that worker threads have taken; false if some are not done after SPIN_LIMIT looks."""
    for _ in range(SPIN_LIMIT):
        if atomic_load(counters, _DONE) == count:
            return True
        spin_pause()
    return False


@jit
def _run_serial(count: int, rows: tuple, scratch: tuple, plan: tuple) -> None:
    for row in range(count):
        _step_env(row, Rows(*rows), ThreadScratch(*scratch), StepPlan(*plan))


class _WorkerThread:
    """A thread that takes rows while there are any, waits actively for a short time, then sleeps until woken."""

    def __init__(self, *work: object) -> None:
        self.asleep, self._stopped, self._wake_up = True, False, threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._loop, name="flashbulb-simulator", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while True:
            self._wake_up.acquire()
            if self._stopped:
                return
            _run_worker(*self._work)
            self.asleep = True  # rows that arrived meanwhile are taken by other threads, which never wait for this one

    def wake(self) -> None:
        self.asleep = False
        self._wake_up.release()

    def stop(self) -> None:
        self._stopped = True
        self._wake_up.release()
        if threading.current_thread() is not self._thread:  # the garbage collector runs in any thread
            self._thread.join()


def _stop(workers: list[_WorkerThread]) -> None:
    for worker in workers:
        worker.stop()


class CompiledSimulator:
    """The default `Simulator`: rows of `states` stepped in place by `threads` threads."""

    def __init__(
        self,
        model: mujoco.MjModel,
        states: np.ndarray,
        readings: np.ndarray,
        fields: Sequence[str],
        plan: StepPlan,
        threads: int,
        dynamics: Dynamics | None = None,
    ) -> None:
        count = len(states)
        self.indices = np.zeros(count, np.int64)
        self.controls = np.zeros((count, plan.control_rows, mujoco.mj_stateSize(model, plan.control_spec)))
        self.warmstarts = np.zeros((count, model.nv))
        self._rows = tuple(Rows(states, self.warmstarts, readings, self.indices, self.controls))
        plan = plan._replace(after=int(plan.after))
        self._plan = tuple(plan)
        self._sense_plan = tuple(plan._replace(substeps=0, after=int(After.SENSORS), carry_warmstart=False))
        silent = without_sensors(model)
        data = [mujoco.MjData(model) for _ in range(threads)]
        scratch = [_thread_scratch(model, silent, one, fields) for one in data]
        memory = [dynamics.new_memory() for _ in range(threads)] if dynamics else []
        self._kept = model, silent, data, memory  # compiled code has their addresses
        if dynamics:
            own = [(one.ctypes.data, other.ctypes.data) for one, other in memory]
            scratch = [s._replace(dynamics=dynamics.address, memory=m) for s, m in zip(scratch, own, strict=True)]
        self._scratch, *others = [tuple(one) for one in scratch]
        self._counters = np.zeros(_COUNTERS, np.int64)
        self._workers = [_WorkerThread(self._counters, self._rows, scratch, self._plan) for scratch in others]
        self.close = weakref.finalize(self, _stop, self._workers)

    def step(self, count: int, meanwhile: Callable[[], None] | None = None) -> None:
        helpers = self._workers[: count if meanwhile else max(count - 1, 0)]
        if not helpers:
            if meanwhile:
                meanwhile()
            _run_serial(count, self._rows, self._scratch, self._plan)
            return
        for worker in helpers:
            if worker.asleep:
                worker.wake()
        try:
            _offer(self._counters, count)
            if meanwhile:
                meanwhile()
        finally:  # after Ctrl-C, too, no thread may still be stepping a row
            _run_call(self._counters, self._rows, self._scratch, self._plan)
            while not _all_done(self._counters, count):
                time.sleep(0)  # yield the core to a thread that shares it

    def sense(self, count: int) -> None:
        _run_serial(count, self._rows, self._scratch, self._sense_plan)


def _thread_scratch(
    model: mujoco.MjModel, silent: mujoco.MjModel, data: mujoco.MjData, fields: Sequence[str]
) -> ThreadScratch:
    views = [getattr(data, field) for field in fields]
    addresses = np.array([(view.ctypes.data, view.nbytes) for view in views], np.int64).reshape(-1, 2)
    return ThreadScratch(model._address, silent._address, data._address, data.qacc_warmstart, addresses, 0, (0, 0))
