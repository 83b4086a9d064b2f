"""MuJoCo called from compiled code: `mj_step` for the members of a batch, by as many threads as there are cores.

`mujoco.rollout` does nearly the same. But its threads sleep between two calls, and to wake them takes as long as a
cheetah's step; and it returns no more than states and sensors, the latter a substep late. Here a helper stays awake for
a moment when its work is done, the next member goes to whoever is free, and whatever `MjData` holds after the last
substep can be read. What that is worth: docs/performance.md.

A member's row of the arrays says all: `MjData` is scratch memory of a thread and holds nothing between steps, so
a result depends neither on the number of threads nor on a member's place in the batch.
"""

from __future__ import annotations

import copy
import ctypes
import enum
import os
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import mujoco
import numpy as np
from numba import types

from flashbulb.envs import atomic
from flashbulb.jit import jit, jit_helper

FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
CONTROL = mujoco.mjtState.mjSTATE_CTRL.value


def thread_count(threads: int | None, num_envs: int) -> int:
    """As many threads as asked for (default: the cores this process may use), never more than members."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(num_envs, threads or cores)


def _library() -> ctypes.CDLL:
    """The very library that MuJoCo's Python package has loaded; what it is called depends on the system."""
    folder = Path(mujoco.__file__).parent
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("libmujoco.", "mujoco.dll")):
            return ctypes.CDLL(str(path))
    raise ImportError(f"MuJoCo's library was not found in {folder}; install the mujoco package from a wheel.")


def _imported(name: str, function: Any, *arguments: types.Type) -> Any:
    """A C function for compiled code, under a name that no other library has."""
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


class After(enum.IntEnum):
    """What is computed after the last substep."""

    NOTHING = 0
    FORCES = 1  # mj_rnePostConstraint: contact forces on bodies, which mj_step leaves out
    SENSORS = 2  # mj_forward: everything as it is at the new state; mj_step leaves it as it was before


class Rows(NamedTuple):
    """The batch. `members` and `controls` are those of one call: the first `count` rows."""

    states: np.ndarray  # (n, size of FULL_PHYSICS)
    warmstarts: np.ndarray  # (n, nv): where the constraint solver starts
    readings: np.ndarray  # (n, ...): fields of MjData after the step, one after the other
    members: np.ndarray  # (n,)
    controls: np.ndarray  # (n, rows, size of their kind): the last row holds for the substeps that have none


class ThreadScratch(NamedTuple):
    """Where one thread works: addresses in its MjData."""

    model: int
    quiet: int  # the same model with its sensors off
    data: int
    warmstart: np.ndarray  # (nv,)
    fields: np.ndarray  # (fields, 2): address and bytes


class Plan(NamedTuple):
    substeps: int
    state_kind: int
    control_kind: int
    carries: bool  # whether the solver starts where it ended
    after: int


# A helper that has been idle for so many looks at the counter, about 0.3 ms, goes to sleep.
PATIENCE = 15_000 if atomic.HAS_PAUSE else 250_000
# Counters, each in a cache line of its own: members that nobody has taken yet, members done.
_LEFT, _DONE, _COUNTERS = 0, 16, 32


@jit_helper
def _simulate(m: int, rows: Rows, bench: ThreadScratch, plan: Plan) -> None:
    """One step of the member in the m-th row of this call."""
    i = rows.members[m]
    model, data, state, warmstart = bench.model, bench.data, rows.states[i], rows.warmstarts[i]
    _set_state(model, data, state.ctypes, plan.state_kind)
    for k in range(len(warmstart)):
        bench.warmstart[k] = warmstart[k]
    for k in range(max(plan.substeps, 1)):
        if k < rows.controls.shape[1]:
            _set_state(model, data, rows.controls[m, k].ctypes, plan.control_kind)
        if plan.substeps:
            _step(bench.quiet, data)
    _get_state(model, data, state.ctypes, plan.state_kind)
    if plan.carries:
        for k in range(len(warmstart)):
            warmstart[k] = bench.warmstart[k]
    if plan.after == After.FORCES:
        _contact_forces(model, data)
    elif plan.after == After.SENSORS:
        _forward(model, data)
    target = rows.readings[i].ctypes.data
    for k in range(len(bench.fields)):
        _copy(target, bench.fields[k, 0], bench.fields[k, 1])
        target += bench.fields[k, 1]


@jit_helper
def _share(counters: np.ndarray, rows: tuple, bench: tuple, plan: tuple) -> None:
    """Take members until none is left. They are counted down, so that who comes late finds none, and never another
    call's."""
    while True:
        left = atomic.add(counters, _LEFT, -1)
        if left <= 0:
            return
        _simulate(left - 1, Rows(*rows), ThreadScratch(*bench), Plan(*plan))
        atomic.add(counters, _DONE, 1)


@jit
def _lead(counters: np.ndarray, count: int, rows: tuple, bench: tuple, plan: tuple) -> None:
    atomic.store(counters, _DONE, 0)
    atomic.store(counters, _LEFT, count)  # from here on helpers join in
    _share(counters, rows, bench, plan)


@jit
def _help(counters: np.ndarray, rows: tuple, bench: tuple, plan: tuple) -> None:
    """Look out for work, until there has been none for a while."""
    idle = 0
    while idle < PATIENCE:
        if atomic.load(counters, _LEFT) > 0:
            _share(counters, rows, bench, plan)
            idle = 0
        idle += 1
        atomic.pause()


@jit
def _finished(counters: np.ndarray, count: int) -> bool:
    """Wait for a while for members in others' hands; are they all done?"""
    for _ in range(PATIENCE):
        if atomic.load(counters, _DONE) == count:
            return True
        atomic.pause()
    return False


@jit
def _alone(count: int, rows: tuple, bench: tuple, plan: tuple) -> None:
    for m in range(count):
        _simulate(m, Rows(*rows), ThreadScratch(*bench), Plan(*plan))


class _Helper:
    """A thread that takes members while there are any, then waits a moment, then sleeps until it is woken."""

    def __init__(self, *work: object) -> None:
        self.asleep, self._stopped, self._alarm = True, False, threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._live, name="flashbulb-simulator", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        while True:
            self._alarm.acquire()
            if self._stopped:
                return
            _help(*self._work)
            self.asleep = True  # work that came meanwhile is done by the others: they never wait for a sleeper

    def wake(self) -> None:
        self.asleep = False
        self._alarm.release()

    def stop(self) -> None:
        self._stopped = True
        self._alarm.release()
        if threading.current_thread() is not self._thread:  # the garbage collector works in any thread
            self._thread.join()


def _stop(helpers: list[_Helper]) -> None:
    for helper in helpers:
        helper.stop()


class Simulator:
    """Steps rows of `states` in place, `substeps` at a time, and writes the MjData `fields` into `readings`."""

    def __init__(
        self,
        model: mujoco.MjModel,
        states: np.ndarray,
        readings: np.ndarray,
        fields: Sequence[str],
        substeps: int,
        control_kind: int,
        control_rows: int,
        threads: int,
        after: After = After.NOTHING,
        carries: bool = False,
    ) -> None:
        count = len(states)
        width = mujoco.mj_stateSize(model, control_kind)
        self.warmstarts = np.zeros((count, model.nv))
        self.members, self.controls = np.zeros(count, np.int64), np.zeros((count, control_rows, width))
        self._rows = tuple(Rows(states, self.warmstarts, readings, self.members, self.controls))
        self._plan = tuple(Plan(substeps, FULL_PHYSICS, control_kind, carries, int(after)))
        self._only_sensors = tuple(Plan(0, FULL_PHYSICS, control_kind, False, int(After.SENSORS)))
        quiet = copy.copy(model)
        quiet.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
        self._kept = model, quiet, [mujoco.MjData(model) for _ in range(threads)]  # of which others know the addresses
        self._bench, *others = [tuple(_bench(model, quiet, data, fields)) for data in self._kept[2]]
        self._counters = np.zeros(_COUNTERS, np.int64)
        self._helpers = [_Helper(self._counters, self._rows, bench, self._plan) for bench in others]
        self.close = weakref.finalize(self, _stop, self._helpers)

    def step(self, count: int) -> None:
        """Advance the first `count` of `members` under their `controls`."""
        if count < 2 or not self._helpers:
            _alone(count, self._rows, self._bench, self._plan)
            return
        for helper in self._helpers[: count - 1]:
            if helper.asleep:
                helper.wake()
        try:
            _lead(self._counters, count, self._rows, self._bench, self._plan)
        finally:  # Ctrl-C must not leave a member in somebody's hands
            while not _finished(self._counters, count):
                time.sleep(0)  # somebody has to share a core: let them have it

    def sense(self, count: int) -> None:
        """Read the fields of the first `count` of `members` where they are, under their `controls`."""
        _alone(count, self._rows, self._bench, self._only_sensors)


def _bench(model: mujoco.MjModel, quiet: mujoco.MjModel, data: mujoco.MjData, fields: Sequence[str]) -> ThreadScratch:
    views = [getattr(data, field) for field in fields]
    places = [(view.ctypes.data, view.nbytes) for view in views]
    addresses = np.array(places, np.int64).reshape(-1, 2)
    return ThreadScratch(model._address, quiet._address, data._address, data.qacc_warmstart, addresses)
