"""Commands on the policy of a run: evaluate, bias and export."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge
from tyro.conf import Positional, arg

from flashbulb.cli.options import parse_options
from flashbulb.config import PositiveInt
from flashbulb.cost_limits import CostLimit, limit_columns
from flashbulb.errors import UsageError


@dataclass(frozen=True)
class EvaluateOptions:
    """Play fresh episodes on seeds that training never saw, with the normaliser frozen.

    Without --deterministic or --stochastic both are measured.
    """

    run: Annotated[Path, Positional]
    """Directory of a run, or one of its checkpoints."""
    episodes: PositiveInt = 100
    """Episodes in each mode."""
    deterministic: bool = False
    """Measure the policy's most likely actions."""
    stochastic: bool = False
    """Measure the policy as in training, with its action noise."""
    json: bool = False
    """Print JSON instead of a table."""
    video: Path | None = None
    """Record one episode to this GIF: in 3D where OpenGL is available, from above otherwise."""
    env: str | None = None
    """The run's environment, named again to allow its code to run; needed if it is module:function."""

    @property
    def modes(self) -> tuple[str, ...]:
        chosen = {"deterministic": self.deterministic, "stochastic": self.stochastic}
        return tuple(mode for mode, wanted in chosen.items() if wanted) or tuple(chosen)


def evaluate_command(arguments: list[str]) -> int:
    """`flashbulb evaluate RUN`: return and cost on fresh seeds, and a video."""
    options = parse_options(EvaluateOptions, arguments, "flashbulb evaluate")
    from flashbulb.analysis.evaluation import evaluate
    from flashbulb.analysis.trained_policy import load_policy

    policy = load_policy(options.run, env=options.env)
    if options.video:
        from flashbulb.plots.video import save_video

        view = save_video(policy, options.video, options.modes[0] == "deterministic")
        if not options.json:
            print(f"Video ({view}, {options.modes[0]}): {options.video}")
    summaries = evaluate(policy, options.episodes, options.modes)
    show = _evaluation_json if options.json else _evaluation_table
    print(show(options, policy, summaries))
    return 0


def _evaluation_json(options: EvaluateOptions, policy: Any, summaries: dict[str, Any]) -> str:
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


def _evaluation_table(options: EvaluateOptions, policy: Any, summaries: dict[str, Any]) -> str:
    config = policy.config
    lines = [
        f"{config.algorithm} on {config.env}, seed {config.seed}, after {policy.steps:,} steps: "
        f"{options.episodes} episodes on fresh seeds, means with 95 % bootstrap intervals"
    ]
    measures = _measures(config.cost_limit)
    width = max(28, *(len(label) + 1 for _, label, _, _ in measures))
    for mode, summary in summaries.items():
        lines.append(mode)
        for name, label, scale, unit in measures:
            row = summary[name]
            interval = "" if row.low is None else f"  [{scale * row.low:.2f}, {scale * row.high:.2f}]"
            lines.append(f"  {label:<{width}}{scale * row.mean:>10.2f}{unit}{interval}")
    return "\n".join(lines)


def _measures(limit: CostLimit) -> list[tuple[str, str, float, str]]:
    """The rows of the table: name of the measure, its label, factor and unit."""
    names = list(limit) if isinstance(limit, dict) else []
    costs = limit_columns(limit).items()
    return [
        ("return", "episode return", 1, ""),
        *((column, f"episode {column.replace('_', ' ', 1)} (limit {own:g})", 1, "") for column, own in costs),
        ("length", "episode length", 1, ""),
        ("share_over_limit", f"episodes over {'any' if names else 'the'} limit", 100, " %"),
        *((f"share_over_limit_{name}", f"episodes over that of {name}", 100, " %") for name in names),
    ]


@dataclass(frozen=True)
class BiasOptions:
    """Compare V_C with the true discounted cost at visited states, each estimated by many rollouts."""

    run: Annotated[Path, Positional]
    """Directory of a run, or one of its checkpoints."""
    states: Annotated[int, Ge(2)] = 50
    """Visited states: half drawn from all, half from those with a cost within ten steps. Half as many start states
    come on top."""
    rollouts: PositiveInt = 20
    """Rollouts from each state."""
    checkpoint: int | None = None
    """Measure the checkpoint after this many iterations (default: the newest)."""
    json: bool = False
    """Print JSON instead of a table."""
    env: str | None = None
    """The run's environment, named again to allow its code to run; needed if it is module:function."""


def bias_command(arguments: list[str]) -> int:
    """`flashbulb bias RUN`: bias of the cost critic."""
    options = parse_options(BiasOptions, arguments, "flashbulb bias")
    from flashbulb.analysis.critic_bias import bias_num_envs, measure_bias
    from flashbulb.analysis.evaluation import evaluation_env
    from flashbulb.analysis.fresh_episodes import FrozenAgent
    from flashbulb.analysis.trained_policy import load_policy
    from flashbulb.jax_setup import setup_jax

    setup_jax()
    run = options.run
    if options.checkpoint is not None:
        run = run / "checkpoints" / f"{options.checkpoint:06d}.safetensors"
        if not run.exists():
            raise UsageError(f"checkpoint: {options.checkpoint} is not there; see {run.parent}.")
    trained = load_policy(run, env=options.env)
    config = trained.config
    if config.cost_names:
        raise UsageError(f"run: {options.run} has several costs; the bias is measured for runs with one.")
    seen = trained.normalise, config.cost_gamma, trained.cost_units
    agent = FrozenAgent(trained.policy, trained.params, trained.critics, *seen)
    env = evaluation_env(trained, bias_num_envs(options.states))
    try:
        bias = measure_bias(agent, env, config.seed, trained.steps, options.states, options.rollouts)
    finally:
        env.close()
    print(_bias_json(options, trained, bias) if options.json else _bias_table(options, trained, bias))
    return 0


def _bias_json(options: BiasOptions, trained: Any, bias: Any) -> str:
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
        if name != "r2"
    }
    return json.dumps({**about, **_finite({**groups, "r2": bias.r2})}, indent=2)


def _finite(plain: Any) -> Any:
    """Replace NaN, which JSON does not have, by null."""
    if isinstance(plain, dict):
        return {name: _finite(value) for name, value in plain.items()}
    return None if plain != plain else plain


def _bias_table(options: BiasOptions, trained: Any, bias: Any) -> str:
    config = trained.config
    lines = [
        f"{config.algorithm} on {config.env}, seed {config.seed}, after {trained.steps:,} steps: V_C minus the true "
        f"discounted cost, {options.rollouts} rollouts per state, 95 % intervals",
        f"{'':<32}{'states':>7}{'V_C':>9}{'truth':>9}{'bias':>9}",
    ]
    groups = {
        "all visited states": bias.all,
        "risky (cost within 10 steps)": bias.risky,
        "initial states": bias.initial,
    }
    for name, group in groups.items():
        if group.states == 0:
            lines.append(f"{name:<32}{0:>7}  none visited")
            continue
        mean, low, high = group.bias
        interval = "" if low is None else f"  [{low:+.2f}, {high:+.2f}]"
        lines.append(f"{name:<32}{group.states:>7}{group.estimate:>9.2f}{group.truth:>9.2f}{mean:>+9.2f}{interval}")
    lines.append(f"R^2 of V_C on these fresh episodes: {bias.r2:.2f}")
    return "\n".join(lines)


@dataclass(frozen=True)
class ExportOptions:
    """Write the deterministic policy, including normalisation and clipping of actions, to a file."""

    run: Annotated[Path, Positional]
    """Directory of a run, or one of its checkpoints."""
    to: Literal["onnx"] = "onnx"
    """Format."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write (default: policy.onnx in the run's directory)."""


def export_command(arguments: list[str]) -> int:
    """`flashbulb export RUN --to onnx`: the policy for use without Flashbulb."""
    options = parse_options(ExportOptions, arguments, "flashbulb export")
    from flashbulb.analysis.onnx_export import export_onnx
    from flashbulb.analysis.trained_policy import load_policy, run_directory
    from flashbulb.storage.safe_files import refuse_link

    policy = load_policy(options.run)
    path = options.output or run_directory(options.run) / "policy.onnx"
    if options.output is None:
        refuse_link(path)
    export_onnx(policy, path)
    (size,) = policy.observation_space.shape
    print(f"{path}: observation (batch, {size}) -> action, after {policy.steps:,} steps")
    return 0
