"""Weights & Biases beside TensorBoard: the same names and numbers, for those who asked for it with `--wandb`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flashbulb.config import Config, to_dict
from flashbulb.errors import RunError, UsageError
from flashbulb.storage.csv_log import Row


class WeightsAndBiases:
    """Environment steps on the x axis. The run's directory names it, so that a resumed run goes on in the same place.

    Whether it talks to a server is W&B's own setting: with WANDB_MODE=offline it writes below the run's directory only.
    """

    def __init__(self, directory: Path, config: Config) -> None:
        wandb = load_wandb()
        try:
            self._run: Any = wandb.init(
                project="flashbulb",
                id=directory.name,
                name=directory.name,
                group=f"{config.algorithm} on {config.env}",
                dir=str(directory),
                config=to_dict(config),
                resume="allow",
            )
        except Exception as error:  # no login, no network: W&B has many kinds
            reason = " ".join(str(error).split())
            raise RunError(f"W&B cannot be started ({reason}); log in, or set WANDB_MODE=offline.") from error

    def write(self, row: Row, steps: int) -> None:
        finite = {
            name: value for name, value in row.items() if name not in ("iteration", "steps") and np.isfinite(value)
        }
        self._run.log(finite, step=steps)

    def close(self) -> None:
        self._run.finish()


def load_wandb() -> Any:
    """The package, or one sentence; asked for before a run makes its directory."""
    try:
        import wandb
    except ImportError:
        raise UsageError("wandb: the package is missing; install it with pip install flashbulb[wandb].") from None
    return wandb
