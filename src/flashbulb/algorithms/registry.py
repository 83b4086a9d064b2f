"""Every named algorithm as a combination of parts, with the defaults it changes, and how others are registered."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flashbulb.algorithms.parts import (
    ACTORS,
    AUGMENTATIONS,
    MULTIPLIERS,
    ActorPart,
    AugmentationPart,
    MultiplierPart,
    find_part,
)
from flashbulb.algorithms.stream_registry import outside_streams, stream_part
from flashbulb.config import Config
from flashbulb.envs.registry import env_plugins
from flashbulb.errors import UsageError
from flashbulb.plugins import load_installed, registering_module, require_plugins, script_note
from flashbulb.validation import validate


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as a combination of parts, and the defaults of `Config` that it changes.

    Parts are names in the tables of `algorithms/parts.py` and `memory/cost_streams.py`, or parts of your own.
    """

    summary: str
    actor: str | ActorPart = "trpo"
    """How the policy steps."""
    multiplier: str | MultiplierPart = "none"
    """What sets lambda, the weight of cost in the advantages; with "none" only the actor's step may heed the cost."""
    cost_stream: str = "extrinsic"
    """What the cost critic learns from: the task's cost ("extrinsic"), that plus beta c^I ("memory", MICE), that plus a
    constant, or a cost stream that was registered."""
    cost_critics: int = 1
    """Number of cost critics; of several the maximum is used."""
    augmentation: str | AugmentationPart = "none"
    """What the agent sees that the task does not have, such as what is left of the cost limit ("saute")."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Config` whose default it changes; parts as dictionaries."""
    plugins: tuple[str, ...] = ()
    """Modules that registered it or its cost stream; filled in by the registries."""

    @property
    def actor_part(self) -> ActorPart:
        part = find_part("actor", self.actor, ACTORS, ActorPart)
        assert part is not None
        return part

    @property
    def multiplier_part(self) -> MultiplierPart | None:
        return find_part("multiplier", self.multiplier, MULTIPLIERS, MultiplierPart)

    @property
    def augmentation_part(self) -> AugmentationPart:
        part = find_part("augmentation", self.augmentation, AUGMENTATIONS, AugmentationPart)
        assert part is not None
        return part

    @property
    def uses_cost_critic(self) -> bool:
        """Whether V_C, and with it whatever is added to the cost, influences the policy."""
        return self.multiplier_part is not None or self.actor_part.constrained

    @property
    def several_costs(self) -> bool:
        """Whether it can keep a limit for each of several costs."""
        return self.actor_part.several_costs and self.augmentation_part == AUGMENTATIONS["none"]

    @property
    def used_parts(self) -> frozenset[str]:
        """The parts of `Config` that have an effect."""
        multiplier = self.multiplier_part
        used = {"policy", "critic", *self.actor_part.settings, *self.augmentation_part.settings}
        used |= {*(multiplier.settings if multiplier else ()), *stream_part(self.cost_stream).settings}
        return frozenset(used | ({"margin"} if self.uses_cost_critic else set()))

    @property
    def unused_settings(self) -> frozenset[str]:
        """The settings of `Config` that have no effect, and that the command line refuses."""
        parts = {item.name for item in dataclasses.fields(Config) if dataclasses.is_dataclass(item.default_factory)}
        unused = parts - self.used_parts
        if self.multiplier_part is None:
            unused |= {"cost_advantage"}
        if not self.uses_cost_critic:
            unused |= {"violations", "cost_normalise", "cost_after_end"}
        return frozenset(unused)


# A cost signal with little noise, and a step that reacts to it: chosen on tuning seeds (docs/tuning.md).
_CLOSED_LOOP: dict[str, Any] = {
    "num_envs": 100,
    "stagger": True,
    "cost_estimate": "steps",
    "warm_up": 50,
    "near_lidar": True,
    "policy": {"share_noise": True, "least_std": 0.2},
    "cost_advantage": "standardised",
    "cost_after_end": "mean",
    "trust_region": {"kl": 0.02, "decay": 0.5},
    "pid": {"proportional": 0.3, "integral": 0.03, "maximum": 10.0},
    "violations": 0.1,
    "margin": {"start": "cautious", "rate": 0.1, "maximum": 4.0, "noise": "observed"},
}

_BASES: dict[str, Algorithm] = {
    "trpo-pid": Algorithm(
        "TRPO with a Lagrange multiplier set by a PID controller, and a margin below the limit",
        "trpo",
        "pid",
        settings=_CLOSED_LOOP,
    ),
    "cpo": Algorithm("Constrained policy optimisation", "cpo"),
    "c-trpo": Algorithm("TRPO in a region that contains only safe policies", "c-trpo"),
    "sb-trpo": Algorithm("TRPO that keeps a share of the possible cost reduction", "sb-trpo"),
    "pid-lag": Algorithm("PPO with a Lagrange multiplier set by a PID controller", "ppo", "pid"),
    "ppo-lag": Algorithm("PPO with a Lagrange multiplier set by gradient ascent", "ppo", "ascent"),
    "cup": Algorithm(
        "PPO step for reward, then projection for cost",
        "cup",
        "ascent",
        # As its peers have it. With a multiplier that follows the excess, the projection is a leap at random.
        settings={"ascent": {"rule": "adam", "maximum": 2.0}},
    ),
    "saute": Algorithm("PPO with the cost budget in the observation", "ppo", augmentation="saute"),
    "simmer-pid": Algorithm("Saute with a budget scheduled by a PID controller", "ppo", augmentation="simmer"),
    "pid-lag-twin": Algorithm("PID Lagrangian with the larger of two cost critics", "ppo", "pid", cost_critics=2),
    "trpo-lag": Algorithm("TRPO with a Lagrange multiplier set by gradient ascent", "trpo", "ascent"),
    "rcpo": Algorithm("Natural policy gradient with a Lagrange multiplier set by gradient ascent", "natural", "ascent"),
    "focops": Algorithm(
        "First-order steps towards the optimal constrained policy",
        "focops",
        "ascent",
        settings={"proximal": {"kl": 0.02}, "ascent": {"maximum": 2.0}},
    ),
    "pcpo": Algorithm(
        "TRPO step for reward, then projection onto the constraint",
        "pcpo",
        settings={"trust_region": {"scale": "episode"}},  # per step, as CPO has it, the limit is hardly felt
    ),
    "p3o": Algorithm("PPO with an exact penalty of the exceeded limit", "p3o"),
    "ipo": Algorithm("PPO with a logarithmic barrier at the limit", "ppo", "log-barrier"),
    "crpo": Algorithm("TRPO for reward within the limit, for cost outside it", "crpo"),
    "ppo-early-end": Algorithm("PPO; an episode ends when it exceeds the limit", "ppo", augmentation="early-end"),
    "trpo": Algorithm("Trust region policy optimisation; ignores cost", "trpo"),
    "ppo": Algorithm("Proximal policy optimisation; ignores cost", "ppo"),
}
# Names that earlier versions or the paper use.
ALIASES = {"mice-pid": "mice-pid-lag", "td3-pid": "pid-lag-twin"}


def register_algorithm(name: str, algorithm: Algorithm) -> None:
    """Make an algorithm known under a name, so that it can be trained, resumed and composed as `mice-NAME`.

    A module may register a name again, which replaces its own algorithm; names of others are refused.
    """
    if not re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", name):
        raise UsageError(f"algorithm: {name!r} is not allowed as a name; it must be lower-case words with hyphens.")
    if not isinstance(algorithm, Algorithm):
        raise UsageError(f"algorithm: a {type(algorithm).__name__} is not allowed; it must be an Algorithm.")
    module, taken = registering_module(), _find(name)
    if taken is not None and (name not in _BASES or module not in taken.plugins):
        raise UsageError(f"algorithm: {name!r} is taken; choose another name.")
    if stream_part(algorithm.cost_stream).plugin:
        raise UsageError("algorithm: register it without its cost stream; the two compose as STREAM-NAME.")
    _ = algorithm.used_parts  # refuses unknown parts
    unknown = algorithm.used_parts - {item.name for item in dataclasses.fields(Config)}
    if unknown:
        raise UsageError(f"settings: {min(unknown)!r} is not allowed in a part; it must be a part of Config.")
    algorithm = dataclasses.replace(algorithm, plugins=(module,))
    _with_settings(Config(name, "TASK"), algorithm.settings)  # refuses unknown settings
    _BASES[name] = ALGORITHMS[name] = algorithm


def get_algorithm(name: str) -> Algorithm:
    """The algorithm of that name: of the table, or composed as `mice-X`, `constant-N-X`, `X-no-projection`,
    `X-salient`, `X-authors`, or `STREAM-X` with a registered cost stream."""
    found = _find(name)
    if found is None:
        load_installed()
        found = _find(name)
    if found is None:
        meant = _meant(name)
        hint = f"did you mean {meant}? The" if meant else "the"
        raise UsageError(
            f"algorithm: unknown algorithm {name!r}; {hint} known ones are {', '.join(ALGORITHMS)}, and mice-X, "
            "constant-N-X for an X with a cost critic."
        )
    return found


# Names of OmniSafe and SafePO that differ from ours in more than case and hyphens.
_ELSEWHERE = {
    "cppopid": "pid-lag",
    "ppopid": "pid-lag",
    "pdo": "trpo-lag",
    "oncrpo": "crpo",
    "pposaute": "saute",
    "pposimmerpid": "simmer-pid",
    "ppoearlyterminated": "ppo-early-end",
    "sbtrpo": "sb-trpo",
    "mice": "mice-cpo",
}


def _meant(name: str) -> str | None:
    """The algorithm that a name of another library, or one with a slip, probably means."""
    known = {known.replace("-", ""): known for known in ALGORITHMS} | _ELSEWHERE
    plain = re.sub("[^a-z0-9.]", "", name.lower())
    close = [plain] if plain in known else difflib.get_close_matches(plain, known, n=1, cutoff=0.75)
    return known[close[0]] if close else None


def algorithm_of(config: Config) -> Algorithm:
    """The algorithm of a run; if a plugin that the run needs is not loaded, the error says which."""
    require_plugins(config.plugins)
    try:
        algorithm = get_algorithm(config.algorithm)
    except UsageError as error:
        raise UsageError(f"{str(error).rstrip('.')}{script_note(config.plugins)}.") from None
    _require_several(algorithm, config)
    return algorithm


def _find(name: str) -> Algorithm | None:
    name = ALIASES.get(name, name)
    return _BASES.get(name) or _compose(name)


# The salient view reaches further, so a smaller factor has the same effect: chosen on tuning seeds (docs/tuning.md).
_SALIENT = {"memory": {"view": "salient", "xi": 0.1}, "balance": {"initial": 0.6, "rate": 0.0006}}
# What the published code does where it departs from the paper (docs/method.md, "Readings").
_AUTHORS = {
    "memory": {"distance": "own-mean", "kernel": "linear", "xi": 1e-4, "normalise": "none", "recall": "causal"},
    "balance": {"factor": "state", "rate": 1e-3, "unit": "start"},
    "cost_normalise": "standardise",
}
_SUFFIXES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "-no-projection": ("Ablation: no random projection.", {"memory": {"embedding": 0}}),
    "-authors": ("Memory, kernel, factor and costs as in the authors' code.", _AUTHORS),
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
    stream, _, rest = name.partition("-")
    if stream in outside_streams() and (base := _find(rest)):
        part = stream_part(stream)
        base = dataclasses.replace(base, plugins=(*base.plugins, *({part.plugin} - set(base.plugins))))
        return _with_stream(name, base, stream, f"{part.summary} {base.summary}".strip(), {})
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
    summary="Recommended: trpo-pid with a memory of unsafe states (MICE) that sorts lidars and weighs entries",
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
    algorithm = get_algorithm(algorithm_name)
    needed = (*algorithm.plugins, *(plugin for plugin in env_plugins(env) if plugin not in algorithm.plugins))
    config = Config(algorithm=algorithm_name, env=env, plugins=needed)
    config = _with_settings(config, algorithm.settings)
    return _require_several(algorithm, validate(_with_settings(config, settings)))


def _require_several(algorithm: Algorithm, config: Config) -> Config:
    """The configuration; refused if it has several costs and the algorithm cannot handle them."""
    if config.cost_names and not algorithm.several_costs:
        able = [name for name, known in ALGORITHMS.items() if known.several_costs and known.uses_cost_critic]
        raise UsageError(
            f"cost_limit: {config.algorithm} keeps one limit only; give one number, or use an algorithm that keeps "
            f"several ({', '.join(able)}, and mice-X of these)."
        )
    return config


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
