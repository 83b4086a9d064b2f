"""The parts of an algorithm as protocols: actor step, multiplier, augmentation. docs/add_an_algorithm.md explains them.

`Algorithm` names a part of these tables, or holds one that was made elsewhere. The functions of a built-in part are
imported when they are first called, so that names and settings are known without JAX.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flashbulb.config import Config
from flashbulb.envs.base import CostVectorEnv
from flashbulb.envs.early_end import EarlyEnd
from flashbulb.errors import UsageError

if TYPE_CHECKING:
    from flashbulb.algorithms.actor import ActorStep, HostStep, Metrics
    from flashbulb.algorithms.policy import Policy
    from flashbulb.batch import Batch


def _no_state(*_: Any) -> Any:
    return ()


def _as_it_is(env: CostVectorEnv, config: Config) -> CostVectorEnv:
    return env


def _end_early(env: CostVectorEnv, config: Config) -> CostVectorEnv:
    return EarlyEnd(env, config.limit)


def _own_rewards(state: Any, batch: Batch, config: Config) -> tuple[Any, Any, Metrics]:
    return batch.rewards, state, {}


def _tell_nothing(env: CostVectorEnv, state: Any) -> None:
    return None


@dataclass(frozen=True)
class ActorPart:
    """How the policy steps."""

    make: Callable[[Policy, Config], ActorStep | HostStep]
    """(policy, config) -> step, a pure function that JAX compiles: (actor, inputs) -> (actor, metrics). As a `HostStep`
    it is not compiled by JAX but called as it is."""
    start: Callable[[Any, Config], Any] = _no_state
    """(parameters of the policy, config) -> the first state of its optimiser: any tree of arrays."""
    settings: tuple[str, ...] = ()
    """The parts of `Config` that it reads, such as "proximal"."""
    constrained: bool = False
    """Whether the step itself takes account of the constraint, beside what a multiplier does."""
    several_costs: bool = False
    """Whether it handles several costs: cost advantages (states, K), and a constraint and a multiplier (K,)."""


@dataclass(frozen=True)
class MultiplierPart:
    """What sets lambda, the weight of cost in the advantages."""

    start: Callable[[Config], Any]
    """config -> its first state: any tree of arrays."""
    step: Callable[[Any, Any, Config], tuple[Any, Any, Metrics]]
    """(state, cost, config) -> (state, lambda, metrics), pure. The limit, `config.limit`, applies to `cost`: J_C + I.
    With several costs it is applied to each, with its own state and limit."""
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class AugmentationPart:
    """What an algorithm changes about the task as its agent sees it: observations, ends of episodes, rewards."""

    wrap: Callable[[CostVectorEnv, Config], CostVectorEnv] = _as_it_is
    """(env, config) -> the environment that the agent sees."""
    start: Callable[[Config], Any] = _no_state
    """config -> its first state: any tree of arrays."""
    rewards: Callable[[Any, Batch, Config], tuple[Any, Any, Metrics]] = _own_rewards
    """(state, batch, config) -> (the rewards to learn from, state, metrics), pure."""
    tell: Callable[[CostVectorEnv, Any], None] = _tell_nothing
    """(env, state): called after each iteration, to tell the environment what has changed."""
    settings: tuple[str, ...] = ()
    training_only: bool = False
    """Whether an evaluation is on the task without it."""
    note: str = ""
    """What it adds to the observation, if anything, for messages about observations of the wrong size."""


Part = TypeVar("Part", ActorPart, MultiplierPart, AugmentationPart)


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported at the first call."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"flashbulb.algorithms.{module}"), name)(*arguments)

    return call


def _trust_region(module: str, name: str, start: Callable[[Any, Config], Any] = _no_state) -> ActorPart:
    return ActorPart(_later(module, name), start, ("trust_region", "integral"), constrained=True)


def _proximal(module: str, name: str) -> Callable[[Policy, Config], ActorStep | HostStep]:
    """The step of a module in compiled loops or in JAX, as the configuration says."""
    on_host, in_jax = _later(module, f"{name}_on_host"), _later(module, f"{name}_actor")

    def make(policy: Policy, config: Config) -> ActorStep | HostStep:
        step: ActorStep | HostStep = (on_host if config.proximal.backend == "compiled" else in_jax)(policy, config)
        return step

    return make


_adam = _later("proximal", "start_adam")
ACTORS: dict[str, ActorPart] = {
    "trpo": ActorPart(_later("cpo", "trpo_actor"), settings=("trust_region",), several_costs=True),
    "cpo": _trust_region("cpo", "cpo_actor"),
    "c-trpo": _trust_region("c_trpo", "c_trpo_actor", _later("c_trpo", "start_recovery")),
    "sb-trpo": _trust_region("sb_trpo", "sb_trpo_actor"),
    "ppo": ActorPart(_proximal("proximal", "ppo"), _adam, ("proximal",), several_costs=True),
    "pcpo": _trust_region("pcpo", "pcpo_actor"),
    "crpo": ActorPart(
        _later("crpo", "crpo_actor"), settings=("trust_region", "crpo"), constrained=True, several_costs=True
    ),
    "natural": ActorPart(_later("natural_gradient", "natural_actor"), settings=("trust_region",), several_costs=True),
    "focops": ActorPart(_proximal("focops", "focops"), _adam, ("proximal", "focops"), several_costs=True),
    "p3o": ActorPart(_proximal("p3o", "p3o"), _adam, ("proximal", "p3o"), constrained=True),
    "cup": ActorPart(_proximal("cup", "cup"), _later("cup", "start_both"), ("proximal",)),
}
MULTIPLIERS: dict[str, MultiplierPart | None] = {
    "none": None,
    "pid": MultiplierPart(_later("multipliers", "start_pid"), _later("multipliers", "pid_multiplier"), ("pid",)),
    "ascent": MultiplierPart(
        _later("multipliers", "start_ascent"), _later("multipliers", "ascent_multiplier"), ("ascent",)
    ),
    "log-barrier": MultiplierPart(_no_state, _later("multipliers", "log_barrier_multiplier"), ("log_barrier",)),
}
_BUDGET_NOTE = "with what is left of the episode's cost budget, over the cost limit, as the last entry"


def _budget(name: str) -> AugmentationPart:
    wrap, start, rewards = (_later("cost_budget", f"{name}_{function}") for function in ("wrap", "start", "rewards"))
    return AugmentationPart(
        wrap, start, rewards, _later("cost_budget", "set_env_budget"), ("budget",), note=_BUDGET_NOTE
    )


AUGMENTATIONS: dict[str, AugmentationPart] = {
    "none": AugmentationPart(),
    "saute": _budget("saute"),
    "simmer": _budget("simmer"),
    "early-end": AugmentationPart(_end_early, training_only=True),
}


def find_part(kind: str, part: Any, known: Mapping[str, Part | None], wanted: type[Part]) -> Part | None:
    """A part that is given itself, or by its name in the table of known ones."""
    if isinstance(part, wanted):
        return part
    if not isinstance(part, str) or part not in known:
        names = ", ".join(map(repr, known))
        raise UsageError(f"{kind}: {part!r} is not allowed; it must be {names} or an {wanted.__name__}.")
    return known[part]
