"""Every named algorithm as a combination of parts, with the defaults it changes. No other module knows names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from flashbulb.config import Config
from flashbulb.errors import UsageError
from flashbulb.validation import validate


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as a combination of parts, and the defaults of `Config` that it changes."""

    summary: str
    actor: Literal["trust-region", "proximal", "proximal-projection"] = "trust-region"
    """How the policy steps: to the edge of a trust region, by clipped gradients (PPO), or by clipped gradients
    for reward followed by a projection for cost (CUP)."""
    multiplier: Literal["none", "dual", "barrier", "share", "pid", "ascent"] = "none"
    """What sets the weight of cost: nothing (cost is ignored), a rule of the trust-region step itself (CPO's dual,
    C-TRPO's barrier, SB-TRPO's share), or a Lagrange multiplier by a PID controller or by gradient ascent."""
    cost_stream: Literal["extrinsic", "memory", "constant"] = "extrinsic"
    """What the cost critic learns from: the task's cost, that plus beta c^I (MICE), or that plus a constant."""
    cost_critics: int = 1
    """Number of cost critics; of several the maximum is used."""
    augmentation: Literal["none", "saute", "simmer"] = "none"
    """What is appended to the observation: nothing, what is left of the cost limit, or of a scheduled budget."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Config` whose default it changes; parts as dictionaries."""

    @property
    def uses_cost_critic(self) -> bool:
        """Whether V_C, and with it whatever is added to the cost, influences the policy."""
        return self.multiplier != "none"


# A cost signal with little noise, and a step that reacts to it: chosen on tuning seeds (docs/method.md).
_CLOSED_LOOP: dict[str, Any] = {
    "num_envs": 100,
    "stagger": True,
    "cost_estimate": "steps",
    "warm_up": 50,
    "cost_gamma": 0.998,
    "cost_lam": 0.99,
    "cost_advantage": "standardised",
    "trust_region": {"kl": 0.02, "decay": 0.5},
    "pid": {"proportional": 0.3, "integral": 0.03, "maximum": 10.0},
    "violations": 0.1,
    "margin": {"rate": 0.02, "maximum": 2.5},
}

_BASES: dict[str, Algorithm] = {
    "trpo-pid": Algorithm(
        "Recommended: TRPO with a Lagrange multiplier set by a PID controller, and a margin below the limit",
        "trust-region",
        "pid",
        settings=_CLOSED_LOOP,
    ),
    "cpo": Algorithm("Constrained policy optimisation", "trust-region", "dual"),
    "c-trpo": Algorithm("TRPO in a region that contains only safe policies", "trust-region", "barrier"),
    "sb-trpo": Algorithm("TRPO that keeps a share of the possible cost reduction", "trust-region", "share"),
    "pid-lag": Algorithm("PPO with a Lagrange multiplier set by a PID controller", "proximal", "pid"),
    "ppo-lag": Algorithm("PPO with a Lagrange multiplier set by gradient ascent", "proximal", "ascent"),
    "cup": Algorithm("PPO step for reward, then projection for cost", "proximal-projection", "ascent"),
    "saute": Algorithm("PPO with the cost budget in the observation", "proximal", augmentation="saute"),
    "simmer-pid": Algorithm("Saute with a budget scheduled by a PID controller", "proximal", augmentation="simmer"),
    "pid-lag-twin": Algorithm("PID Lagrangian with the larger of two cost critics", "proximal", "pid", cost_critics=2),
    "trpo": Algorithm("Trust region policy optimisation; ignores cost", "trust-region"),
    "ppo": Algorithm("Proximal policy optimisation; ignores cost", "proximal"),
}
# Names that earlier versions or the paper use.
ALIASES = {"mice-pid": "mice-pid-lag", "td3-pid": "pid-lag-twin"}


def get_algorithm(name: str) -> Algorithm:
    """The algorithm of that name: of the table, or composed as `mice-X`, `constant-N-X`, `X-no-projection`,
    `X-salient`."""
    found = _find(name)
    if found is None:
        raise UsageError(
            f"algorithm: unknown algorithm {name!r}; the known ones are {', '.join(ALGORITHMS)}, and mice-X, "
            "constant-N-X for an X with a cost critic."
        )
    return found


def _find(name: str) -> Algorithm | None:
    name = ALIASES.get(name, name)
    return _BASES.get(name) or _compose(name)


# The salient view reaches further, so a smaller factor has the same effect: chosen on tuning seeds (docs/method.md).
_SALIENT = {"memory": {"view": "salient", "xi": 0.1}, "balance": {"initial": 0.6, "rate": 0.0006}}
_SUFFIXES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "-no-projection": ("Ablation: no random projection.", {"memory": {"embedding": 0}}),
    "-salient": ("Ours: a memory that sorts lidar readings and weighs entries by how well they tell danger.", _SALIENT),
}


def _compose(name: str) -> Algorithm | None:
    for suffix, (what, settings) in _SUFFIXES.items():
        if name.endswith(suffix) and (base := _find(name.removesuffix(suffix))):
            if base.cost_stream != "memory" or {"memory", "balance"} & set(base.settings):
                raise UsageError(f"algorithm: {name!r} does not exist; {suffix} needs a mice-X before it, once.")
            return dataclasses.replace(base, summary=f"{what} {base.summary}", settings={**base.settings, **settings})
    if name.startswith("mice-") and (base := _find(name.removeprefix("mice-"))):
        return _with_stream(name, base, "memory", f"MICE: memory-driven intrinsic cost. {base.summary}", {})
    constant = re.fullmatch(r"constant-(\d+(?:\.\d+)?)-(.+)", name)
    if constant and (base := _find(constant[2])):
        summary = f"Ablation: {constant[1]} added to the cost value. {base.summary}"
        return _with_stream(name, base, "constant", summary, {"constant": {"value": float(constant[1])}})
    return None


def _with_stream(name: str, base: Algorithm, stream: Any, summary: str, settings: Mapping[str, Any]) -> Algorithm:
    if not base.uses_cost_critic:
        raise UsageError(f"algorithm: {name!r} does not exist; its base has no cost critic for a cost stream.")
    if base.cost_stream != "extrinsic":
        raise UsageError(f"algorithm: {name!r} does not exist; its base already has a cost stream.")
    return dataclasses.replace(base, summary=summary, cost_stream=stream, settings={**base.settings, **settings})


# The controller has its own margin, so the memory only shapes the cost (margin 0), to the end of the run (discount 1).
_BASES["mice-salient"] = dataclasses.replace(
    get_algorithm("mice-trpo-pid-salient"),
    summary="MICE on the closed loop: trpo-pid with the salient memory",
    settings={
        **_CLOSED_LOOP,
        **_SALIENT,
        "balance": {"initial": 0.6, "rate": 0.0006, "discount": 1.0, "margin": 0.0},
    },
)
_COMPOSED = ("mice-pid", "mice-cpo", "mice-cup", "constant-3-cpo", "constant-5-cpo", "constant-15-cpo")
# Those that `flashbulb algorithms` lists; more can be composed.
ALGORITHMS: dict[str, Algorithm] = dict(_BASES)
for _name in (*_COMPOSED, "mice-cpo-no-projection"):
    ALGORITHMS[_name] = get_algorithm(_name)


def configure(algorithm_name: str, env: str, /, **settings: Any) -> Config:
    """An algorithm's configuration with the caller's settings on top; parts may be dictionaries."""
    config = Config(algorithm=algorithm_name, env=env)
    config = _with_settings(config, get_algorithm(algorithm_name).settings)
    return validate(_with_settings(config, settings))


def _with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    for name, value in settings.items():
        part = getattr(config, name, None)
        if name not in {f.name for f in dataclasses.fields(Config)}:
            raise UsageError(f"{name}: there is no such setting; see flashbulb.config.Config.")
        if isinstance(value, dict) and dataclasses.is_dataclass(part) and not isinstance(part, type):
            unknown = set(value) - {f.name for f in dataclasses.fields(part)}
            if unknown:
                raise UsageError(f"{name}.{min(map(str, unknown))}: there is no such setting in {type(part).__name__}.")
            value = dataclasses.replace(part, **value)
        config = dataclasses.replace(config, **{name: value})
    return config
