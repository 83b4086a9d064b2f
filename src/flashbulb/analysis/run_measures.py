"""Measures of one run, from which tables and figures are made.

return, cost             mean over the last tenth of the iterations; of several costs the leading one, and cost_NAME
return_feasible          mean return over those of the last ten iterations whose cost was within the limit; NaN: none
return_first             return of the first iteration, that is, of an untrained policy
return_area              area under the curve of returns, over its width in steps
mean_excess              mean over the iterations of max(episode cost - limit, 0)
violation_rate           share of the iterations whose episode cost was above the limit; violation_rate_NAME of each
                         of several costs
violation_rate_hundred   the same of the mean cost of the last hundred episodes that had ended by then, which is what
                         other libraries log; of one cost only
cost_rate                sum of all costs over all steps
..._late                 these four over the second half of the run alone
bias_unsafe              V_C - G_C at the unsafe states of the last ten iterations (column critic_bias_sampled_unsafe)
critic_bias_rollout, true_cost_value, critic_bias_rollout_risky, true_cost_value_risky
                         V_C minus the mean of rollouts, and that mean, where `bias_every` measured them, second half
anticipation, memory_size, intrinsic_return
                         mean over the last ten iterations
beta                     balancing factor of the last iteration
steps, finished          steps taken; 1 if they are all that were asked for
seconds, steps_per_second
                         of all iterations, compilation included, the time between interruption and resumption not
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flashbulb.analysis.statistics import area_under
from flashbulb.config import Config
from flashbulb.cost_limits import limits_of_rows
from flashbulb.storage.run_directory import RunDirectory, load_config
from flashbulb.storage.run_list import last_tenth, read_columns, read_metrics

LAST = 10  # iterations, for measures that need several even in a short run
EPISODES = 100

Columns = dict[str, np.ndarray]


def measures(run: Path) -> dict[str, float]:
    """All measures of a run, finished or not; NaN for what it does not have (yet)."""
    config, metrics = load_config(run), read_metrics(run)
    done = len(metrics.get("steps", ()))
    return {
        **_performance(metrics, config, done),
        **_safety(metrics, config, done),
        **_safety_of_episodes(run, metrics, config, done),
        **_memory(metrics, done),
        **_progress(run, metrics, config, done),
    }


def _performance(metrics: Columns, config: Config, done: int) -> dict[str, float]:
    returns, cost = _column(metrics, "return", done), _column(metrics, "cost", done)
    feasible = (cost <= limits_of_rows(metrics, config.cost_limit))[-LAST:]
    each = [f"cost_{name}" for name in config.cost_names]
    return {
        "return": _mean(last_tenth(returns)),
        "cost": _mean(last_tenth(cost)),
        **{name: _mean(last_tenth(_column(metrics, name, done))) for name in each},
        "return_feasible": _mean(returns[-LAST:][feasible]),
        "return_first": _mean(returns[:1]),
        "return_area": area_under(returns, _column(metrics, "steps", done)),
    }


def _safety(metrics: Columns, config: Config, done: int) -> dict[str, float]:
    cost, steps = _column(metrics, "cost", done), _column(metrics, "steps", done)
    paid = _column(metrics, "cost_rate", done) * steps  # all costs until then
    excess = cost - limits_of_rows(metrics, config.cost_limit)
    found: dict[str, float] = {}
    for suffix, first in (("", 0), ("_late", done // 2)):
        before = (paid[first - 1], steps[first - 1]) if first else (0.0, 0.0)
        found |= {
            f"violation_rate{suffix}": _mean(excess[first:] > 0),
            f"mean_excess{suffix}": _mean(np.maximum(excess[first:], 0.0)),
            f"cost_rate{suffix}": (paid[-1] - before[0]) / (steps[-1] - before[1]) if done else np.nan,
        }
    for name in config.cost_names:
        found[f"violation_rate_{name}"] = _mean(_column(metrics, f"violation_rate_{name}", done)[-1:])
    return {name: float(value) for name, value in found.items()}


def _safety_of_episodes(run: Path, metrics: Columns, config: Config, done: int) -> dict[str, float]:
    episodes, mean = read_columns(RunDirectory(run).episodes), np.full(done, np.nan)
    if len(episodes.get("cost", ())) and not config.cost_names:
        paid = np.append(0.0, np.cumsum(episodes["cost"]))
        ended = np.searchsorted(episodes["iteration"], np.arange(done), side="right")
        first = np.maximum(ended - EPISODES, 0)
        some = ended > 0
        mean[some] = (paid[ended] - paid[first])[some] / (ended - first)[some]
    above = np.where(np.isnan(mean), np.nan, mean > limits_of_rows(metrics, config.cost_limit))
    return {"violation_rate_hundred": _mean(above), "violation_rate_hundred_late": _mean(above[done // 2 :])}


def _memory(metrics: Columns, done: int) -> dict[str, float]:
    # An iteration without a cost has no unsafe state; its row has a zero there.
    paid = np.diff(_column(metrics, "cost_rate", done) * _column(metrics, "steps", done), prepend=0.0)
    unsafe = np.where(paid > 1e-6, _column(metrics, "critic_bias_sampled_unsafe", done), np.nan)
    beta = _column(metrics, "beta", done)
    measured = ("critic_bias_rollout", "true_cost_value", "critic_bias_rollout_risky", "true_cost_value_risky")
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
    """Mean of the values that are not NaN; NaN without a warning where there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
