"""MuJoCo physics of the navigation tasks.

`advance` and `sense` write `state.physics` and `state.sensors` in place and nothing else. Every call starts from the
rows alone (no warm start is carried over), so a snapshot needs nothing of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import mujoco
import numpy as np

from flashbulb.envs.navigation.task_state import Rules, TaskState
from flashbulb.envs.navigation.tasks import BUTTON_RADIUS, GREMLIN_HEIGHT, GREMLIN_TRAVEL
from flashbulb.envs.registry import PhysicsBackend
from flashbulb.envs.simulator import After, RolloutSimulator, StepPlan, make_simulator, selected_backend
from flashbulb.jit import jit

SUBSTEPS = 10
_CONTROLS = int(mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_MOCAP_POS | mujoco.mjtState.mjSTATE_MOCAP_QUAT)


@jit
def clip_actions(actions: np.ndarray) -> None:
    """Clip to [-1, 1] in place."""
    for m in range(len(actions)):
        for d in range(2):
            actions[m, d] = min(max(actions[m, d], -1.0), 1.0)


@jit
def fill_controls(
    state: TaskState, rules: Rules, indices: np.ndarray, actions: np.ndarray, control: np.ndarray
) -> None:
    """The inputs of every substep: motor commands, and the mocap poses of buttons and gremlins as positions, then
    quaternions."""
    buttons = rules.buttons[1] - rules.buttons[0]
    gremlins = rules.gremlins[1] - rules.gremlins[0]
    quaternions = 2 + 3 * (buttons + gremlins)
    for m in range(len(indices)):
        i = indices[m]
        time = state.physics[i, 0]
        for k in range(control.shape[1]):
            row = control[m, k]
            along, across = GREMLIN_TRAVEL * math.sin(time), GREMLIN_TRAVEL * math.cos(time)
            row[0], row[1] = actions[m, 0], actions[m, 1]
            for b in range(buttons):
                centre = state.objects[i, rules.buttons[0] + b]
                row[2 + 3 * b], row[3 + 3 * b], row[4 + 3 * b] = centre[0], centre[1], BUTTON_RADIUS
                row[quaternions + 4 * b] = 1.0
            for g in range(gremlins):
                centre = state.objects[i, rules.gremlins[0] + g]
                at, turn = 2 + 3 * (buttons + g), quaternions + 4 * (buttons + g)
                row[at] = centre[0] + along
                row[at + 1] = centre[1] + across
                row[at + 2] = GREMLIN_HEIGHT
                row[turn], row[turn + 3] = math.cos(centre[2] / 2), math.sin(centre[2] / 2)
            time += rules.timestep


class MujocoPhysics:
    """Every environment in MuJoCo, with sensors read at the new states."""

    def __init__(
        self,
        model: mujoco.MjModel,
        rules: Rules,
        state: TaskState,
        threads: int,
        physics: PhysicsBackend | None = None,
    ) -> None:
        self.model, self.rules, self.state, self.threads = model, rules, state, threads
        self.backend = selected_backend(physics)
        moving = rules.gremlins[1] > rules.gremlins[0]  # otherwise the inputs of the first substep hold for all
        self._plan = StepPlan(SUBSTEPS, _CONTROLS, SUBSTEPS if moving else 1, After.SENSORS)
        self._simulator = make_simulator(
            model, state.physics, state.sensors, ["sensordata"], self._plan, threads, self.backend
        )

    def advance(self, indices: np.ndarray, actions: np.ndarray, meanwhile: Callable[[], None] | None = None) -> None:
        """One step of these environments, under one action each; `meanwhile` is work on others (`Simulator.step`)."""
        self._simulator.step(self._fill(indices, actions), meanwhile)

    def sense(self, indices: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of these environments at their states, under one action each."""
        self._simulator.sense(self._fill(indices, actions))

    def _fill(self, indices: np.ndarray, actions: np.ndarray) -> int:
        count = len(indices)
        self._simulator.indices[:count] = indices
        fill_controls(self.state, self.rules, indices, actions, self._simulator.controls)
        return count

    def raw_steps(self, actions: np.ndarray) -> None:
        """MuJoCo alone under `actions[step, env]`, for the benchmarks: changes nothing."""
        count, substeps = len(self.state.physics), len(actions) * SUBSTEPS
        control = np.zeros((count, substeps, self._simulator.controls.shape[2]))
        fill_controls(self.state, self.rules, np.arange(count), actions[0], control)
        control[:, :, :2] = np.repeat(actions.swapaxes(0, 1), SUBSTEPS, axis=1)
        self._raw.raw_steps(control)

    @cached_property
    def _raw(self) -> RolloutSimulator:
        nothing = np.zeros((len(self.state.physics), 0))
        return RolloutSimulator(self.model, self.state.physics, nothing, (), self._plan, self.threads)

    def close(self) -> None:
        self._simulator.close()
