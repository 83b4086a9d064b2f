"""Advance a batch through MuJoCo: the one place that knows the simulator at run time, replaceable as such.

`advance` and `sense` write `batch.physics` and `batch.sensors` in place and touch nothing else. Every call
starts from the rows alone (no warm start is carried over), so a snapshot needs nothing of the simulator, and
the result cannot depend on which thread stepped which member.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from mujoco import rollout

from flashbulb.cmdp.navigation.batch import Batch, Rules
from flashbulb.cmdp.navigation.streams import compiled
from flashbulb.cmdp.navigation.tasks import BUTTON_RADIUS, GREMLIN_HEIGHT, GREMLIN_TRAVEL

SUBSTEPS = 10


@compiled
def fill_controls(batch: Batch, rules: Rules, members: np.ndarray, actions: np.ndarray, control: np.ndarray) -> None:
    """Motor commands, and where buttons and gremlins' paths are, per substep: [ctrl, mocap pos, mocap quat].

    The last substep only reads the sensors of the state before it and repeats the inputs of its predecessor.
    """
    buttons = rules.buttons[1] - rules.buttons[0]
    gremlins = rules.gremlins[1] - rules.gremlins[0]
    quaternions = 2 + 3 * (buttons + gremlins)
    last = max(control.shape[1] - 2, 0)
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
            if k < last:
                time += rules.timestep


class RolloutPhysics:
    """MuJoCo's thread pool steps the members side by side."""

    def __init__(self, model: mujoco.MjModel, rules: Rules, count: int, threads: int) -> None:
        state = mujoco.mjtState
        self.rules = rules
        self._spec = int(state.mjSTATE_CTRL | state.mjSTATE_MOCAP_POS | state.mjSTATE_MOCAP_QUAT)
        self._models = [model] * count
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        # Sensors that rollout returns belong to the state before a substep: one more substep than needed
        # gives those of the state after the tenth.
        self._control = np.zeros((count, SUBSTEPS + 1, mujoco.mj_stateSize(model, self._spec)))
        self._states = np.empty((count, SUBSTEPS + 1, mujoco.mj_stateSize(model, int(state.mjSTATE_FULLPHYSICS))))
        self._sensed = np.empty((count, SUBSTEPS + 1, model.nsensordata))
        self._everyone = np.arange(count)

    def advance(self, batch: Batch, members: np.ndarray, actions: np.ndarray) -> None:
        """One environment step of the members, under one action each."""
        count = len(members)
        control, states, sensed = self._control[:count], self._states[:count], self._sensed[:count]
        fill_controls(batch, self.rules, members, actions, control)
        self._roll(batch.physics[members], control, states, sensed)
        batch.physics[members] = states[:, SUBSTEPS - 1]
        batch.sensors[members] = sensed[:, SUBSTEPS]

    def sense(self, batch: Batch, members: np.ndarray, actions: np.ndarray) -> None:
        """Read the sensors of the members where they stand, under their actions."""
        count = len(members)
        control, states, sensed = (
            np.zeros((count, 1, a.shape[2])) for a in (self._control, self._states, self._sensed)
        )
        fill_controls(batch, self.rules, members, actions, control)
        self._roll(batch.physics[members], control, states, sensed)
        batch.sensors[members] = sensed[:, 0]

    def raw_steps(self, batch: Batch, actions: np.ndarray) -> None:
        """Only `mj_step`, from the current states under `actions[step, member]`, the outcome thrown away: the
        speed limit that `benchmarks/stepping.py` holds the tasks against."""
        substeps = len(actions) * SUBSTEPS
        control, states, sensed = (
            np.zeros((len(batch.physics), substeps, a.shape[2])) for a in (self._control, self._states, self._sensed)
        )
        fill_controls(batch, self.rules, self._everyone, actions[0], control)
        control[:, :, :2] = np.repeat(actions.swapaxes(0, 1), SUBSTEPS, axis=1)
        self._roll(batch.physics, control, states, sensed)

    def _roll(self, initial: np.ndarray, control: np.ndarray, states: np.ndarray, sensed: np.ndarray) -> None:
        count, substeps = control.shape[:2]
        self._pool.rollout(
            self._models[:count],
            self._data,
            initial,
            control,
            control_spec=self._spec,
            skip_checks=True,
            nstep=substeps,
            state=states,
            sensordata=sensed,
            # Two portions per thread: few hand-overs, and still something to balance with.
            chunk_size=-(-count // (2 * len(self._data))),
        )

    def close(self) -> None:
        if self._pool.rollout_ is not None:
            self._pool.close()
