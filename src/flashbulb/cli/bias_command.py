"""`flashbulb bias RUN`: how far the cost critic is from the truth, and to which side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from flashbulb.cli.options import parse
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class BiasOptions:
    """Compare V_C with the true discounted cost at visited states, by rolling each out many times."""

    run: tyro.conf.Positional[Path]
    """Directory of a run, or one of its checkpoints."""
    states: int = 50
    """Visited states: half drawn from all, half from those that meet a cost within ten steps."""
    rollouts: int = 20
    """Rollouts from each."""
    checkpoint: int | None = None
    """Measure the checkpoint after this many iterations (default: the newest)."""
    json: bool = False
    """Print JSON instead of a table."""


def main(arguments: list[str]) -> int:
    options = parse(BiasOptions, arguments, "flashbulb bias")
    for field, least in (("states", 2), ("rollouts", 1)):
        if getattr(options, field) < least:
            found = getattr(options, field)
            raise UsageError(f"{field}: {found} is not allowed; it must be a whole number of at least {least}.")
    from flashbulb.analysis.critic_bias import FrozenAgent, bias_num_envs, measure_bias
    from flashbulb.analysis.evaluation import evaluation_env
    from flashbulb.analysis.trained_policy import load_policy
    from flashbulb.jax_setup import setup_jax

    setup_jax()
    run = options.run
    if options.checkpoint is not None:
        run = run / "checkpoints" / f"{options.checkpoint:06d}.safetensors"
        if not run.exists():
            raise UsageError(f"checkpoint: {options.checkpoint} is not there; see {run.parent}.")
    trained = load_policy(run)
    config = trained.config
    agent = FrozenAgent(trained.policy, trained.params, trained.critics, trained.normalise, config.cost_gamma)
    env = evaluation_env(trained, bias_num_envs(options.states))
    try:
        bias = measure_bias(agent, env, config.seed, trained.steps, options.states, options.rollouts)
    finally:
        env.close()
    print(_json(options, trained, bias) if options.json else _table(options, trained, bias))
    return 0


def _json(options: BiasOptions, trained: Any, bias: Any) -> str:
    about = {
        "run": str(options.run),
        "algorithm": trained.config.algorithm,
        "task": trained.config.env,
        "steps": trained.steps,
        "rollouts": options.rollouts,
    }
    groups = {
        name: {**group.bias._asdict(), "estimate": group.estimate, "truth": group.truth, "states": group.states}
        for name, group in bias._asdict().items()
    }
    return json.dumps({**about, **_finite(groups)}, indent=2)


def _finite(plain: Any) -> Any:
    """JSON has no NaN; null says that there is no such number."""
    if isinstance(plain, dict):
        return {name: _finite(value) for name, value in plain.items()}
    return None if plain != plain else plain


def _table(options: BiasOptions, trained: Any, bias: Any) -> str:
    config = trained.config
    lines = [
        f"{config.algorithm} on {config.env}, seed {config.seed}, after {trained.steps:,} steps: V_C minus the true "
        f"discounted cost, {options.rollouts} rollouts per state, 95 % intervals",
        f"{'':<32}{'states':>7}{'V_C':>9}{'truth':>9}{'bias':>9}",
    ]
    for name, group in (("all visited states", bias.all), ("risky (cost within 10 steps)", bias.risky)):
        if group.states == 0:
            lines.append(f"{name:<32}{0:>7}  none was visited")
            continue
        mean, low, high = group.bias
        interval = "" if low is None else f"  [{low:+.2f}, {high:+.2f}]"
        lines.append(f"{name:<32}{group.states:>7}{group.estimate:>9.2f}{group.truth:>9.2f}{mean:>+9.2f}{interval}")
    return "\n".join(lines)
