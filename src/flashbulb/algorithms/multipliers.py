"""What sets the Lagrange multiplier, lambda: a PID controller, gradient ascent, or the slope of a barrier.

Each is a pure step `(state, cost) -> (state, lambda, metrics)`, taken before the policy's. `cost` is what the limit
applies to: J_C + I, with I = 0 without memory (Theorem 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from flashbulb.algorithms.actor import Metrics
from flashbulb.config import AscentConfig, Config, PidConfig


class Pid(NamedTuple):
    integral: jax.Array  # () I, in units of cost
    smoothed_excess: jax.Array  # ()
    smoothed_costs: jax.Array  # (delay,) of the iterations before, oldest first
    steps: jax.Array  # ()

    @classmethod
    def start(cls, config: PidConfig) -> Pid:
        integral = config.initial / config.integral if config.integral else 0.0
        return cls(jnp.float32(integral), jnp.float32(0), jnp.zeros(config.delay, jnp.float32), jnp.int32(0))


def pid_step(state: Pid, cost: jax.Array, limit: float, config: PidConfig) -> tuple[Pid, jax.Array, Metrics]:
    """lambda = (K_P Delta + K_I I + K_D d)_+ with I and d clipped at 0 from below (Appendix A.2).

    Nothing came before the first cost, so averages start from it and its difference is 0: no derivative kick. The
    integral grows no further than would fill lambda's cap by itself, so that it can shrink at once (anti-windup).
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
    adam: Any = ()  # Adam's moments of the excess, if they set the step

    @classmethod
    def start(cls, config: AscentConfig) -> Ascent:
        lam = jnp.float32(config.initial)
        return cls(lam, optax.scale_by_adam().init(lam)) if config.rule == "adam" else cls(lam)


def ascent_step(
    state: Ascent, cost: jax.Array, limit: float, config: AscentConfig
) -> tuple[Ascent, jax.Array, Metrics]:
    """lambda <- (lambda + eta (cost - d))_+, capped; with the rule `adam`, Adam's direction in place of the excess."""
    move, adam = cost - limit, state.adam
    if config.rule == "adam":
        move, adam = optax.scale_by_adam().update(move, adam)
    lam = jnp.clip(state.lam + config.learning_rate * move, 0.0, config.maximum)
    return Ascent(lam, adam), lam, {"lambda": lam}


def start_pid(config: Config) -> Pid:
    return Pid.start(config.pid)


def pid_multiplier(state: Pid, cost: jax.Array, config: Config) -> tuple[Pid, jax.Array, Metrics]:
    return pid_step(state, cost, config.limit, config.pid)


def start_ascent(config: Config) -> Ascent:
    return Ascent.start(config.ascent)


def ascent_multiplier(state: Ascent, cost: jax.Array, config: Config) -> tuple[Ascent, jax.Array, Metrics]:
    return ascent_step(state, cost, config.limit, config.ascent)


def log_barrier_multiplier(state: tuple[()], cost: jax.Array, config: Config) -> tuple[tuple[()], jax.Array, Metrics]:
    """IPO (Liu, Ding, Liu, 2020): the slope of -weight log(d - cost), capped; outside the limit the cap."""
    slack, settings = config.limit - cost, config.log_barrier
    slope = settings.weight / jnp.maximum(slack, settings.weight / settings.maximum)
    lam = jnp.where(slack > 0, slope, settings.maximum)
    return state, lam, {"lambda": lam}
