"""A batch of MuJoCo states stepped by MuJoCo's own thread pool, `mujoco.rollout`.

The batch is one plain array, a row of `state` (time, qpos, qvel) per member. `MjData` is scratch memory of a
thread and holds nothing between steps, so a result depends on a member's row alone: not on the number of
threads, nor on the size of the batch or the place in it. The constraint solver starts cold at every step;
with a tolerance of 1e-12 that moves the outcome by less than 1e-12 and costs no measurable time.
"""

from __future__ import annotations

import os

import mujoco
import numpy as np
from mujoco.rollout import Rollout

FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
CONTROL = mujoco.mjtState.mjSTATE_CTRL.value


def thread_count(threads: int | None, num_envs: int) -> int:
    """As many threads as asked for (default: the cores this process may use), never more than members."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(num_envs, threads or cores)


class Physics:
    """`num_envs` states of one model; a step is `substeps` of `mj_step` under constant controls."""

    def __init__(self, model: mujoco.MjModel, num_envs: int, substeps: int, threads: int | None) -> None:
        self.model, self.num_envs, self.substeps = model, num_envs, substeps
        self.threads = thread_count(threads, num_envs)
        nstate = mujoco.mj_stateSize(model, FULL_PHYSICS)
        self.state = np.zeros((num_envs, nstate))
        self.qpos = self.state[:, 1 : 1 + model.nq]
        self.qvel = self.state[:, 1 + model.nq : 1 + model.nq + model.nv]
        # A pool of one would only add a hand-over: with nthread=0 the calling thread does the work itself.
        self._pool = Rollout(nthread=self.threads if self.threads > 1 else 0)
        self._scratch = [mujoco.MjData(model) for _ in range(self.threads)]
        # One portion per thread: each hand-over costs more than uneven portions do.
        self._portion = -(-num_envs // self.threads)
        self._models = [model] * num_envs
        self._controls = np.zeros((num_envs, substeps, model.nu))
        self._states = np.zeros((num_envs, substeps, nstate))
        self._sensors = np.zeros((num_envs, substeps, model.nsensordata))

    def restart(self, members: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Put the members into these positions and velocities, at time zero."""
        self.state[members] = 0.0
        self.qpos[members] = qpos
        self.qvel[members] = qvel

    def step(self, controls: np.ndarray) -> None:
        """Advance every member under its row of `controls`."""
        self._controls[:] = controls[:, None]
        self._roll(self._controls, self._states, self._sensors, self._portion)
        self.state[:] = self._states[:, -1]

    def raw_steps(self, controls: np.ndarray) -> None:
        """Only `mj_step`, from the current states under `controls[step, member]`, the outcome thrown away.

        One call for all steps: nothing waits for the slowest member, nothing is read back in between. It is
        the speed limit that `benchmarks/stepping.py` holds the tasks against.
        """
        count = len(controls) * self.substeps
        held = np.ascontiguousarray(np.repeat(controls.swapaxes(0, 1), self.substeps, axis=1))
        states = np.empty((self.num_envs, count, self.state.shape[1]))
        self._roll(held, states, np.empty((self.num_envs, count, self.model.nsensordata)), portion=1)

    def _roll(self, controls: np.ndarray, states: np.ndarray, sensors: np.ndarray, portion: int) -> None:
        self._pool.rollout(
            self._models,
            self._scratch,
            self.state,
            controls,
            control_spec=CONTROL,
            skip_checks=True,
            nstep=controls.shape[1],
            initial_warmstart=None,
            state=states,
            sensordata=sensors,
            chunk_size=portion,
        )

    def close(self) -> None:
        self._pool.close()
