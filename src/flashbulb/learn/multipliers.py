"""What sets the price of cost, lambda: a PID controller, or gradient ascent.

Each is a pure step `(state, cost) -> (state, lambda, report)`, taken before the policy's. `cost` is what the limit
applies to: J_C + I, with I = 0 without memory (Theorem 2).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from flashbulb.config import AscentConfig, PidConfig

Report = dict[str, jax.Array]


class Pid(NamedTuple):
    integral: jax.Array  # () I, in units of cost
    smoothed_excess: jax.Array  # ()
    smoothed_costs: jax.Array  # (delay,) of the iterations before, oldest first
    steps: jax.Array  # ()

    @classmethod
    def start(cls, config: PidConfig) -> Pid:
        integral = config.initial / config.integral if config.integral else 0.0
        return cls(jnp.float32(integral), jnp.float32(0), jnp.zeros(config.delay, jnp.float32), jnp.int32(0))


def pid_step(state: Pid, cost: jax.Array, limit: float, config: PidConfig) -> tuple[Pid, jax.Array, Report]:
    """lambda = (K_P Delta + K_I I + K_D d)_+ with I and d clipped at 0 from below (Appendix A.2).

    Nothing came before the first cost, so averages start from it and its difference is 0: no derivative kick. The
    integral grows no further than would fill lambda's cap by itself, so that it can shrink at once: no windup.
    """
    first = state.steps == 0
    excess = cost - limit
    smoothed_excess = jnp.where(first, excess, _smooth(state.smoothed_excess, excess, config.smooth_proportional))
    smoothed_cost = jnp.where(first, cost, _smooth(state.smoothed_costs[-1], cost, config.smooth_derivative))
    past = jnp.where(first, cost, state.smoothed_costs)

    ceiling = config.maximum / config.integral if config.integral else jnp.inf
    integral = jnp.clip(state.integral + excess, 0.0, ceiling)
    p = config.proportional * smoothed_excess
    i = config.integral * integral
    d = config.derivative * jnp.maximum(smoothed_cost - past[0], 0.0)
    lam = jnp.clip(p + i + d, 0.0, config.maximum)

    after = Pid(integral, smoothed_excess, jnp.append(past[1:], smoothed_cost), state.steps + 1)
    return after, lam, {"lambda": lam, "pid_p": p, "pid_i": i, "pid_d": d}


def _smooth(old: jax.Array, new: jax.Array, weight_of_past: float) -> jax.Array:
    return weight_of_past * old + (1 - weight_of_past) * new


class Ascent(NamedTuple):
    lam: jax.Array  # ()
    mean: jax.Array  # () Adam's moments of the excess
    square: jax.Array  # ()
    steps: jax.Array  # ()

    @classmethod
    def start(cls, config: AscentConfig) -> Ascent:
        return cls(jnp.float32(config.initial), jnp.float32(0), jnp.float32(0), jnp.int32(0))


def ascent_step(state: Ascent, cost: jax.Array, limit: float, config: AscentConfig) -> tuple[Ascent, jax.Array, Report]:
    """lambda <- (lambda + eta (cost - d))_+, capped; or with Adam's direction in place of the excess."""
    excess, steps = cost - limit, state.steps + 1
    mean, square = _smooth(state.mean, excess, 0.9), _smooth(state.square, excess**2, 0.999)
    unit = (mean / (1 - 0.9**steps)) / (jnp.sqrt(square / (1 - 0.999**steps)) + 1e-8)
    move = unit if config.rule == "adam" else excess
    lam = jnp.clip(state.lam + config.learning_rate * move, 0.0, config.maximum)
    return Ascent(lam, mean, square, steps), lam, {"lambda": lam}
