"""Advance a batch through MuJoCo: the one place that knows the simulator at run time, replaceable as such.

`advance` and `sense` write `batch.physics` and `batch.sensors` in place and touch nothing else. Every call
starts from the rows alone (no warm start is carried over), so a snapshot needs nothing of the simulator.
"""

from __future__ import annotations

import math
from functools import cached_property

import mujoco
import numpy as np

from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.envs.navigation.tasks import BUTTON_RADIUS, GREMLIN_HEIGHT, GREMLIN_TRAVEL
from flashbulb.envs.raw_benchmark import RawBenchmark
from flashbulb.envs.simulator import After, Simulator
from flashbulb.jit import jit

SUBSTEPS = 10
_CONTROLS = int(mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_MOCAP_POS | mujoco.mjtState.mjSTATE_MOCAP_QUAT)


@jit
def bound(actions: np.ndarray) -> bool:
    """Clip to [-1, 1] in place; false if something is not a number."""
    numbers = True
    for m in range(len(actions)):
        for d in range(2):
            numbers &= not math.isnan(actions[m, d])
            actions[m, d] = min(max(actions[m, d], -1.0), 1.0)
    return numbers


@jit
def fill_controls(batch: Batch, rules: Rules, members: np.ndarray, actions: np.ndarray, control: np.ndarray) -> None:
    """Motor commands, and where buttons and gremlins' paths are, per substep: [ctrl, mocap pos, mocap quat]."""
    buttons = rules.buttons[1] - rules.buttons[0]
    gremlins = rules.gremlins[1] - rules.gremlins[0]
    quaternions = 2 + 3 * (buttons + gremlins)
    for m in range(len(members)):
        i = members[m]
        time = batch.physics[i, 0]
        for k in range(control.shape[1]):
            row = control[m, k]
            along, across = GREMLIN_TRAVEL * math.sin(time), GREMLIN_TRAVEL * math.cos(time)
            row[0], row[1] = actions[m, 0], actions[m, 1]
            for b in range(buttons):
                centre = batch.objects[i, rules.buttons[0] + b]
                row[2 + 3 * b], row[3 + 3 * b], row[4 + 3 * b] = centre[0], centre[1], BUTTON_RADIUS
                row[quaternions + 4 * b] = 1.0
            for g in range(gremlins):
                centre = batch.objects[i, rules.gremlins[0] + g]
                at, turn = 2 + 3 * (buttons + g), quaternions + 4 * (buttons + g)
                row[at] = centre[0] + along
                row[at + 1] = centre[1] + across
                row[at + 2] = GREMLIN_HEIGHT
                row[turn], row[turn + 3] = math.cos(centre[2] / 2), math.sin(centre[2] / 2)
            time += rules.timestep


class SimulatedPhysics:
    """Every member in MuJoCo, with sensors read at the new states."""

    def __init__(self, model: mujoco.MjModel, rules: Rules, batch: Batch, threads: int) -> None:
        self.model, self.rules, self.batch, self.threads = model, rules, batch, threads
        moves = rules.gremlins[1] > rules.gremlins[0]  # otherwise the inputs of a step's first substep hold for all
        rows = SUBSTEPS if moves else 1
        self._simulator = Simulator(
            model,
            batch.physics,
            batch.sensors,
            ["sensordata"],
            SUBSTEPS,
            _CONTROLS,
            rows,
            threads,
            After.SENSORS,
        )

    def advance(self, members: np.ndarray, actions: np.ndarray) -> None:
        """One environment step of the members, under one action each."""
        self._simulator.step(self._enter(members, actions))

    def sense(self, members: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of the members where they stand, under their actions."""
        self._simulator.sense(self._enter(members, actions))

    def _enter(self, members: np.ndarray, actions: np.ndarray) -> int:
        count = len(members)
        self._simulator.members[:count] = members
        fill_controls(self.batch, self.rules, members, actions, self._simulator.controls)
        return count

    def raw_steps(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, member]`, for the benchmarks: changes nothing."""
        count, substeps = len(self.batch.physics), len(actions) * SUBSTEPS
        control = np.zeros((count, substeps, self._simulator.controls.shape[2]))
        fill_controls(self.batch, self.rules, np.arange(count), actions[0], control)
        control[:, :, :2] = np.repeat(actions.swapaxes(0, 1), SUBSTEPS, axis=1)
        self._yardstick.run(self.batch.physics, control, _CONTROLS)

    @cached_property
    def _yardstick(self) -> RawBenchmark:
        return RawBenchmark(self.model, self.threads)

    def close(self) -> None:
        self._simulator.close()
