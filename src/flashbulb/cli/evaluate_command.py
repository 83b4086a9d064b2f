"""`flashbulb evaluate RUN`: how good the policy is, in numbers with intervals, and on film."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class EvaluateOptions:
    """Play fresh episodes on seeds that training never saw, with the normaliser frozen.

    Without --deterministic or --stochastic both are measured.
    """

    run: tyro.conf.Positional[Path]
    """Directory of a run, or one of its checkpoints."""
    episodes: int = 100
    """How many, in each mode."""
    deterministic: bool = False
    """Measure the policy's most likely actions."""
    stochastic: bool = False
    """Measure the policy as it trained, with its noise."""
    json: bool = False
    """Print JSON instead of a table."""
    video: Path | None = None
    """Film one episode into this GIF: in 3D where there is OpenGL, from above otherwise."""

    @property
    def modes(self) -> tuple[str, ...]:
        chosen = {"deterministic": self.deterministic, "stochastic": self.stochastic}
        return tuple(mode for mode, wanted in chosen.items() if wanted) or tuple(chosen)


def main(arguments: list[str]) -> int:
    options = parse(EvaluateOptions, arguments, "flashbulb evaluate")
    if options.episodes < 1:
        raise UsageError(f"episodes: {options.episodes} is not allowed; it must be a whole number of at least 1.")
    from flashbulb.analysis.evaluation import evaluate
    from flashbulb.analysis.trained_policy import load_policy

    policy = load_policy(options.run)
    if options.video:
        from flashbulb.plots.video import save_video

        view = save_video(policy, options.video, options.modes[0] == "deterministic")
        if not options.json:
            print(f"Video ({view}, {options.modes[0]}): {options.video}")
    summaries = evaluate(policy, options.episodes, options.modes)
    print(_json(options, policy, summaries) if options.json else _table(options, policy, summaries))
    return 0


def _json(options: EvaluateOptions, policy: Any, summaries: dict[str, Any]) -> str:
    from flashbulb.analysis.evaluation import evaluation_seed
    from flashbulb.analysis.statistics import CONFIDENCE

    config = policy.config
    about = {
        "run": str(options.run),
        "algorithm": config.algorithm,
        "task": config.env,
        "steps": policy.steps,
        "episodes": options.episodes,
        "seed": evaluation_seed(config.seed),
        "cost_limit": config.cost_limit,
        "confidence": CONFIDENCE,
    }
    plain = {mode: {name: row._asdict() for name, row in summary.items()} for mode, summary in summaries.items()}
    return json.dumps(about | plain, indent=2)


def _table(options: EvaluateOptions, policy: Any, summaries: dict[str, Any]) -> str:
    config = policy.config
    lines = [
        f"{config.algorithm} on {config.env}, seed {config.seed}, after {policy.steps:,} steps: "
        f"{options.episodes} episodes on fresh seeds, means with 95 % bootstrap intervals"
    ]
    for mode, summary in summaries.items():
        lines.append(f"{mode}")
        for name, label, scale, unit in (
            ("return", "episode return", 1, ""),
            ("cost", f"episode cost (limit {config.cost_limit:g})", 1, ""),
            ("length", "episode length", 1, ""),
            ("share_over_limit", "episodes over the limit", 100, " %"),
        ):
            row = summary[name]
            interval = "" if row.low is None else f"  [{scale * row.low:.2f}, {scale * row.high:.2f}]"
            lines.append(f"  {label:<28}{scale * row.mean:>10.2f}{unit}{interval}")
    return "\n".join(lines)
