"""`flashbulb export RUN --to onnx`: the policy for where there is no Python, or no Flashbulb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from flashbulb.cli.options import parse


@dataclass(frozen=True)
class ExportOptions:
    """Write the deterministic policy, with its normaliser and the clipping of actions, as a file of its own."""

    run: tyro.conf.Positional[Path]
    """Directory of a run, or one of its checkpoints."""
    to: Literal["onnx"] = "onnx"
    """Format."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write (default: policy.onnx in the run's directory)."""


def main(arguments: list[str]) -> int:
    options = parse(ExportOptions, arguments, "flashbulb export")
    from flashbulb.analysis.onnx_export import export_onnx
    from flashbulb.analysis.trained_policy import load_policy, run_directory

    policy = load_policy(options.run)
    path = options.output or run_directory(options.run) / "policy.onnx"
    export_onnx(policy, path)
    (size,) = policy.observation_space.shape
    print(f"{path}: observation (batch, {size}) -> action, after {policy.steps:,} steps")
    return 0
