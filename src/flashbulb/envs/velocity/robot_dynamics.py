"""Robots that compiled code of our own moves in place of MuJoCo, as functions with an address.

Other compiled code calls them by that address. Were they compiled into their callers, as usual, each caller would
take as long to compile as they do.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import mujoco
import numba
from numba import carray, types

from flashbulb.envs.velocity.planar_motion import PLANAR_MEMORY, new_planar, step_planar
from flashbulb.envs.velocity.spatial_links import BODIES, SPATIAL_MEMORY, new_spatial
from flashbulb.envs.velocity.spatial_motion import step_spatial
from flashbulb.envs.velocity.tree_contact import WIDTH
from flashbulb.envs.velocity.tree_robot import SHAPE_SIZE, TreeRobot
from flashbulb.envs.velocity.velocity_robots import DynamicsKind, VelocityRobot

_numbers, _whole = types.CPointer(types.float64), types.CPointer(types.int64)
# at, shape, state, control, substeps, readings; 1 if it was moved, 0 if MuJoCo must move it
SIGNATURE = types.int64(_numbers, _whole, _numbers, _numbers, types.int64, _numbers)


def _step_planar_at(at: Any, shape: Any, state: Any, control: Any, substeps: int, readings: Any) -> int:
    return step_planar(
        carray(at, PLANAR_MEMORY),
        carray(shape, SHAPE_SIZE),
        carray(state, 2 * WIDTH + 2),
        carray(control, WIDTH),
        substeps,
        carray(readings, 0),
    )


def _step_spatial_at(at: Any, shape: Any, state: Any, control: Any, substeps: int, readings: Any) -> int:
    return step_spatial(
        carray(at, SPATIAL_MEMORY),
        carray(shape, SHAPE_SIZE),
        carray(state, 2 * WIDTH + 2),
        carray(control, WIDTH),
        substeps,
        carray(readings, 3 * BODIES),
    )


@cache
def step_function(kind: DynamicsKind) -> Any:
    """The compiled function: `.address` for compiled code, `.ctypes` for Python."""
    function = _step_planar_at if kind == "planar" else _step_spatial_at
    return numba.cfunc(SIGNATURE, cache=True, error_model="numpy")(function)


class RobotDynamics(NamedTuple):
    """The `Dynamics` of a robot; its function is compiled when it is asked for the address."""

    kind: DynamicsKind
    model: mujoco.MjModel

    @property
    def address(self) -> int:
        address: int = step_function(self.kind).address
        return address

    def new_memory(self) -> TreeRobot:
        return new_planar(self.model) if self.kind == "planar" else new_spatial(self.model)


def dynamics_of(robot: VelocityRobot, model: mujoco.MjModel) -> RobotDynamics | None:
    return RobotDynamics(robot.dynamics, model) if robot.dynamics else None
