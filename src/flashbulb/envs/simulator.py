"""Steps rows of MuJoCo states: what a step consists of, and the plain simulator on `mujoco.rollout` and `mj_step`.

`make_simulator` chooses between two implementations. They give the same numbers, to rounding where the first has
dynamics of its own:

- "compiled" (`compiled_simulator.py`, the default) calls MuJoCo from Numba code, by several threads, or moves
  robots by compiled dynamics of our own;
- "rollout" (`RolloutSimulator`) uses only MuJoCo's Python package. It is slower, works wherever the package does, and
  helps to find out whether Numba, LLVM or MuJoCo is the cause when numbers change after an upgrade.
"""

from __future__ import annotations

import copy
import enum
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, get_args

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from flashbulb.envs.registry import PhysicsBackend
from flashbulb.errors import UsageError

FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
CONTROL = mujoco.mjtState.mjSTATE_CTRL.value


class After(enum.IntEnum):
    """What is computed after the last substep."""

    NOTHING = 0
    FORCES = 1  # mj_rnePostConstraint: contact forces on bodies, which mj_step leaves out
    SENSORS = 2  # mj_forward: all derived quantities at the new state; mj_step leaves those of the state before


class StepPlan(NamedTuple):
    """What one environment step is for the simulator; numbers only, so that compiled code can read it."""

    substeps: int
    control_spec: int = CONTROL  # the parts of MuJoCo's state that a row of controls sets
    control_rows: int = 1  # rows of controls per step; the last one holds for the remaining substeps
    after: int = After.NOTHING
    carry_warmstart: bool = False  # whether the constraint solver starts from its last solution, or from zero


class Dynamics(Protocol):
    """What moves a robot in place of MuJoCo, for compiled code: a function with an address, and its memory.

    The function takes the addresses of the two arrays of its memory, of a row of states and of a row of controls, the
    number of substeps, and the address of a row of readings. It returns 1, or 0 if MuJoCo must take the step; then the
    row is as it was.
    """

    @property
    def address(self) -> int: ...

    def new_memory(self) -> tuple[np.ndarray, np.ndarray]:
        """For one thread."""
        ...


class Simulator(Protocol):
    """A batch of states that is stepped in place.

    Before a call, the caller writes the rows to step into `indices[:count]` and their controls into
    `controls[:count]`. After the call, `readings` holds the MjData fields of these rows.
    """

    indices: np.ndarray  # (n,)
    controls: np.ndarray  # (n, control_rows, size of control_spec)
    warmstarts: np.ndarray  # (n, nv)

    def step(self, count: int, meanwhile: Callable[[], None] | None = None) -> None:
        """Advance the first `count` of `indices` by one environment step.

        `meanwhile` is work on other rows, which the calling thread does while other threads begin with these.
        """
        ...

    def sense(self, count: int) -> None:
        """Compute the fields of the first `count` of `indices` at their states, under the first row of controls."""
        ...

    def close(self) -> None: ...


def make_simulator(
    model: mujoco.MjModel,
    states: np.ndarray,
    readings: np.ndarray,
    fields: Sequence[str],
    plan: StepPlan,
    threads: int,
    physics: PhysicsBackend | None = None,
    dynamics: Dynamics | None = None,
) -> Simulator:
    """A simulator of rows of `states` that writes the MjData `fields`, one after the other, into rows of `readings`.

    With `dynamics`, the compiled one moves the robot by those where possible; they then write the fields.
    """
    if selected_backend(physics) == "rollout":
        return RolloutSimulator(model, states, readings, fields, plan, threads)
    try:
        from flashbulb.envs.compiled_simulator import CompiledSimulator
    except (ImportError, OSError) as error:
        raise UsageError(
            f"physics: 'compiled' cannot be loaded on this platform ({error}); use physics='rollout' or set the "
            "environment variable FLASHBULB_PHYSICS=rollout."
        ) from error
    return CompiledSimulator(model, states, readings, fields, plan, threads, dynamics)


def selected_backend(physics: PhysicsBackend | None) -> PhysicsBackend:
    """The argument if there is one, else the environment variable FLASHBULB_PHYSICS, else "compiled"."""
    name: Any = physics or os.environ.get("FLASHBULB_PHYSICS") or "compiled"
    if name not in get_args(PhysicsBackend):
        raise UsageError(f"physics: {name!r} is not allowed; it must be one of {', '.join(get_args(PhysicsBackend))}.")
    backend: PhysicsBackend = name
    return backend


def without_sensors(model: mujoco.MjModel) -> mujoco.MjModel:
    """The same model with its sensors off, for substeps whose readings are not used."""
    silent = copy.copy(model)
    silent.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
    return silent


class RolloutSimulator:
    """The simulator without compiled code of our own.

    `mujoco.rollout` returns states only. Where a plan reads fields of MjData or carries warm starts, the rows are
    stepped one after the other by `mj_step`.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        states: np.ndarray,
        readings: np.ndarray,
        fields: Sequence[str],
        plan: StepPlan,
        threads: int,
    ) -> None:
        count = len(states)
        self.indices = np.zeros(count, np.int64)
        self.controls = np.zeros((count, plan.control_rows, mujoco.mj_stateSize(model, plan.control_spec)))
        self.warmstarts = np.zeros((count, model.nv))
        self._model, self._silent, self._states, self._plan = model, without_sensors(model), states, plan
        self._readings, self._fields = readings, fields
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        # With nthread=0 the calling thread does the work; a pool of one thread would only add a hand-over.
        self._pool = Rollout(nthread=threads if threads > 1 else 0)

    def step(self, count: int, meanwhile: Callable[[], None] | None = None) -> None:
        if meanwhile:
            meanwhile()
        if self._fields or self._plan.carry_warmstart:
            for row in range(count):
                self._step_row(row, self._plan)
        elif count:  # `mujoco.rollout` does not survive an empty batch
            rows, substeps = self.indices[:count], self._plan.substeps
            row_of_substep = np.minimum(np.arange(substeps), self._plan.control_rows - 1)
            controls = np.ascontiguousarray(self.controls[:count, row_of_substep])
            self._states[rows] = self._rollout(self._silent, self._states[rows], controls, self.warmstarts[rows])[:, -1]

    def sense(self, count: int) -> None:
        plan = self._plan._replace(substeps=0, after=After.SENSORS, carry_warmstart=False)
        for row in range(count):
            self._step_row(row, plan)

    def _step_row(self, row: int, plan: StepPlan) -> None:
        """As `compiled_simulator._step_env`, line by line."""
        i, model, data = self.indices[row], self._model, self._data[0]
        mujoco.mj_setState(model, data, self._states[i], FULL_PHYSICS)
        data.qacc_warmstart = self.warmstarts[i]
        for k in range(max(plan.substeps, 1)):
            if k < plan.control_rows:
                mujoco.mj_setState(model, data, self.controls[row, k], plan.control_spec)
            if plan.substeps:
                mujoco.mj_step(self._silent, data)
        mujoco.mj_getState(model, data, self._states[i], FULL_PHYSICS)
        if plan.carry_warmstart:
            self.warmstarts[i] = data.qacc_warmstart
        if plan.after == After.FORCES:
            mujoco.mj_rnePostConstraint(model, data)
        elif plan.after == After.SENSORS:
            mujoco.mj_forward(model, data)
        if self._fields:
            self._readings[i] = np.concatenate([getattr(data, field).ravel() for field in self._fields])

    def raw_steps(self, controls: np.ndarray) -> None:
        """MuJoCo alone under `controls[env, substep]`, in one call for all substeps, for the benchmarks.

        Nothing waits for the slowest environment and nothing is read back in between. The states do not change.
        """
        self._rollout(self._model, self._states, controls, None)

    def _rollout(
        self, model: mujoco.MjModel, states: np.ndarray, controls: np.ndarray, warmstarts: np.ndarray | None
    ) -> np.ndarray:
        count, substeps = controls.shape[:2]
        arrived = np.empty((count, substeps, states.shape[1]))
        self._pool.rollout(
            [model] * count,
            self._data,
            states,
            controls,
            control_spec=self._plan.control_spec,
            skip_checks=True,
            nstep=substeps,
            initial_warmstart=warmstarts,
            state=arrived,
            sensordata=np.empty((count, substeps, self._model.nsensordata)),
            chunk_size=1,
        )
        return arrived

    def close(self) -> None:
        self._pool.close()
