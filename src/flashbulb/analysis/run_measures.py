"""What one run amounts to: METHOD.md, section 7, and what tables and figures need beside it.

return, cost             mean over the last tenth of the iterations
return_feasible          mean return over those of the last ten iterations whose cost was within the limit; NaN: none
return_first             return of the first iteration, that is, of a policy that has learned nothing
return_area              area under the curve of returns, over its width in steps
violation_rate           share of the iterations whose episode cost was above the limit
mean_excess              mean over the iterations of how far it was above
cost_rate                all costs ever paid over all steps ever taken
..._late                 the three over the second half of the run alone
bias_unsafe              V_C - G_C at the unsafe states of the last ten iterations (bootstrapped by the critic itself)
critic_bias, true_cost_value, critic_bias_risky, true_cost_value_risky
                         V_C minus truth and that truth where `bias_every` measured them, second half of the run
anticipation, memory_size, intrinsic_return
                         mean over the last ten iterations
beta                     balancing factor of the last iteration
steps, finished          steps taken; 1 if they are all that were asked for
seconds, steps_per_second
                         of all iterations, compilation included; nothing between an interruption and its resumption
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flashbulb.analysis.statistics import area_under
from flashbulb.config import Config
from flashbulb.storage.run_directory import RunDirectory, load_config
from flashbulb.storage.run_list import read_columns, read_metrics

LAST = 10  # iterations that "the end of a run" means where the last tenth of a short run would be too few

Columns = dict[str, np.ndarray]


def measures(run: Path) -> dict[str, float]:
    """Of a run, finished or not: the same names always, NaN for what it does not have (yet)."""
    config, metrics = load_config(run), read_metrics(run)
    done = len(metrics.get("steps", ()))
    return {
        **_performance(metrics, config, done),
        **_safety(metrics, config, done),
        **_memory(metrics, done),
        **_progress(run, metrics, config, done),
    }


def _performance(metrics: Columns, config: Config, done: int) -> dict[str, float]:
    returns, cost = _column(metrics, "return", done), _column(metrics, "cost", done)
    tail = max(1, done // 10)
    feasible = cost[-LAST:] <= config.cost_limit
    return {
        "return": _mean(returns[-tail:]),
        "cost": _mean(cost[-tail:]),
        "return_feasible": _mean(returns[-LAST:][feasible]),
        "return_first": _mean(returns[:1]),
        "return_area": area_under(returns, _column(metrics, "steps", done)),
    }


def _safety(metrics: Columns, config: Config, done: int) -> dict[str, float]:
    cost, steps = _column(metrics, "cost", done), _column(metrics, "steps", done)
    paid = _column(metrics, "cost_rate", done) * steps  # all costs until then
    found: dict[str, float] = {}
    for suffix, first in (("", 0), ("_late", done // 2)):
        before = (paid[first - 1], steps[first - 1]) if first else (0.0, 0.0)
        found |= {
            f"violation_rate{suffix}": _mean(cost[first:] > config.cost_limit),
            f"mean_excess{suffix}": _mean(np.maximum(cost[first:] - config.cost_limit, 0.0)),
            f"cost_rate{suffix}": (paid[-1] - before[0]) / (steps[-1] - before[1]) if done else np.nan,
        }
    return {name: float(value) for name, value in found.items()}


def _memory(metrics: Columns, done: int) -> dict[str, float]:
    # An iteration without a cost has no unsafe state, and a zero in its place.
    paid = np.diff(_column(metrics, "cost_rate", done) * _column(metrics, "steps", done), prepend=0.0)
    unsafe = np.where(paid > 1e-6, _column(metrics, "cost_bias_unsafe", done), np.nan)
    beta = _column(metrics, "beta", done)
    measured = ("critic_bias", "true_cost_value", "critic_bias_risky", "true_cost_value_risky")
    return {
        "bias_unsafe": _mean(unsafe[-LAST:]),
        **{name: _mean(_column(metrics, name, done)[done // 2 :]) for name in measured},
        **{name: _mean(_column(metrics, name, done)[-LAST:]) for name in ("anticipation", "memory_size")},
        "intrinsic_return": _mean(_column(metrics, "intrinsic_return", done)[-LAST:]),
        "beta": float(beta[-1]) if done else np.nan,
    }


def _progress(run: Path, metrics: Columns, config: Config, done: int) -> dict[str, float]:
    steps = float(metrics["steps"][-1]) if done else 0.0
    seconds = float(_column(read_columns(RunDirectory(run).timing), "seconds", done)[:done].sum())
    return {
        "steps": steps,
        "finished": float(done >= config.iterations),
        "seconds": seconds,
        "steps_per_second": steps / seconds if seconds > 0 else np.nan,
    }


def _column(metrics: Columns, name: str, done: int) -> np.ndarray:
    return metrics.get(name, np.full(done, np.nan))


def _mean(values: np.ndarray) -> float:
    """Of those that there are; NaN without a warning where there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
