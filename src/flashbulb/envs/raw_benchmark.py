"""MuJoCo alone, as fast as its own thread pool goes: the speed limit that `benchmarks/` holds tasks against."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from flashbulb.envs.simulator import FULL_PHYSICS


class RawBenchmark:
    """`mujoco.rollout` on as many threads as the task has."""

    def __init__(self, model: mujoco.MjModel, threads: int) -> None:
        self._model = model
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        # A pool of one would only add a hand-over: with nthread=0 the calling thread does the work itself.
        self._pool = Rollout(nthread=threads if threads > 1 else 0)

    def run(self, states: np.ndarray, controls: np.ndarray, control_kind: int) -> None:
        """From these states under `controls[member, substep]`, the outcome thrown away.

        One call for all substeps: nothing waits for the slowest member, nothing is read back in between.
        """
        count, substeps = controls.shape[:2]
        self._pool.rollout(
            [self._model] * count,
            self._data,
            states,
            controls,
            control_spec=control_kind,
            skip_checks=True,
            nstep=substeps,
            initial_warmstart=None,
            state=np.empty((count, substeps, mujoco.mj_stateSize(self._model, FULL_PHYSICS))),
            sensordata=np.empty((count, substeps, self._model.nsensordata)),
            chunk_size=1,
        )

    def close(self) -> None:
        self._pool.close()
