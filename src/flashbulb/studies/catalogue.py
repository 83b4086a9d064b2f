"""The paper's experiments as data, one entry per figure, and two of our own.

The paper does not name the tasks of its Figures 2, 5, 7 and 13, nor the values of k in Figure 7; those are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from flashbulb.errors import UsageError

FigureKind = Literal["curves", "bars", "bias", "time", "frontier"]  # see plots/study_figures.py
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})
# CPO's step in the authors' code (docs/method.md, "Readings").
_AUTHORS_STEP: Mapping[str, Any] = {"trust_region": {"scale": "episode", "recover": "infeasible"}}


class Variant(NamedTuple):
    """A line of the figure: an algorithm, and the settings that the study varies."""

    algorithm: str
    label: str
    settings: Mapping[str, Any] = NO_SETTINGS


class Study(NamedTuple):
    """The variants and tasks of a figure, the kinds of figure to draw, and the result that the paper claims."""

    name: str
    figure: str
    summary: str
    claim: str
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    kinds: tuple[FigureKind, ...] = ("curves", "bars")

    @property
    def measures_bias(self) -> bool:
        return "bias" in self.kinds


def _algorithms(*names: str) -> tuple[Variant, ...]:
    return tuple(Variant(name, name) for name in names)


GYM = ("SafetyPointGoal1-v0", "SafetyCarGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarCircle1-v0")
MUJOCO = tuple(f"Safety{robot}Velocity-v1" for robot in ("Ant", "HalfCheetah", "Humanoid", "Hopper"))
GOALS = ("SafetyPointGoal1-v0", "SafetyCarGoal1-v0")
BUTTONS = ("SafetyPointButton1-v0", "SafetyCarButton1-v0")
PEERS = ("mice-cpo", "mice-pid", "pid-lag", "cup", "saute", "simmer-pid")
BASES = ("cpo", "mice-cpo", "pid-lag", "mice-pid")
BASELINES = (
    *("trpo-pid", "mice-salient", "cpo", "mice-cpo", "c-trpo", "sb-trpo", "pcpo", "crpo", "trpo-lag", "rcpo"),
    *("pid-lag", "mice-pid", "pid-lag-twin", "ppo-lag", "cup", "mice-cup", "focops", "p3o", "ipo"),
    *("saute", "simmer-pid", "ppo-early-end", "trpo", "ppo"),
)

_ALL = (
    Study(
        "underestimation",
        "Figure 2",
        "The cost critics of CPO and PIDLag against the true cost, during training.",
        "Both underestimate consistently and significantly.",
        _algorithms("cpo", "pid-lag"),
        GOALS,
        ("bias",),
    ),
    Study(
        "safety-gym",
        "Figure 3",
        "MICE and its peers on navigation tasks.",
        "MICE violates the limit significantly less, at an equal or better return.",
        _algorithms(*PEERS),
        GYM,
    ),
    Study(
        "safety-mujoco",
        "Figure 4",
        "MICE and its peers on velocity tasks.",
        "MICE, Saute and SimmerPID never violate the limit, and MICE has the highest return of the three.",
        _algorithms(*PEERS),
        MUJOCO,
    ),
    Study(
        "bias",
        "Figure 5",
        "The cost critic with and without MICE against the true cost, during training.",
        "With MICE the estimate is significantly higher, and its bias approaches zero.",
        _algorithms(*BASES),
        (*GOALS, "SafetyPointCircle1-v0", "SafetyHopperVelocity-v1"),
        ("bias",),
    ),
    Study(
        "constants",
        "Figure 6 (a, b)",
        "The intrinsic cost compared with none and with constants.",
        "Constants lower the return, 5 violates the limit more often than 3, and MICE does best.",
        (
            *_algorithms("mice-cpo", "cpo"),
            # In the place of c^I, with the balancing factor before it. Added to the value instead, a constant is the
            # same as CPO with a limit that is lower by as much.
            *(Variant(f"constant-{c}-cpo", f"constant {c}", {"constant": {"of": "intrinsic"}}) for c in (3, 5, 15)),
        ),
        ("SafetyPointGoal1-v0",),
    ),
    Study(
        "thresholds",
        "Figure 6 (c, d)",
        "MICE-CPO under cost limits of 0, 15 and 25.",
        "MICE keeps each of the limits.",
        tuple(Variant("mice-cpo", f"mice-cpo d={limit}", {"cost_limit": float(limit)}) for limit in (0, 15, 25)),
        ("SafetyPointGoal1-v0",),
    ),
    Study(
        "neighbours",
        "Figure 7",
        "MICE-CPO with intrinsic costs from 1, 5, 10 and 20 nearest neighbours.",
        "More neighbours are safer and take more time.",
        # Divided by sqrt(k), as in equation 5, a state's own entry is worth less the larger k is, and more neighbours
        # mean less intrinsic cost.
        tuple(
            Variant("mice-cpo", f"mice-cpo k={k}", {"memory": {"neighbours": k, "normalise": "none"}})
            for k in (1, 5, 10, 20)
        ),
        GYM,
    ),
    Study(
        "versus-base",
        "Figures 8 and 9",
        "CPO and PIDLag, each with and without MICE, and what we recommend.",
        "MICE keeps the limit better than its base, at an equal or better return.",
        (
            *_algorithms(*BASES, "mice-salient"),
            # The paper's gamma^n takes the balancing factor to a hundredth within 500 iterations.
            Variant("mice-cpo", "mice-cpo, discount 1", {"balance": {"discount": 1.0}}),
            Variant("cpo", "cpo, authors", _AUTHORS_STEP),
            Variant("mice-cpo-authors", "mice-cpo, authors", _AUTHORS_STEP),
        ),
        (*GYM, *MUJOCO),
    ),
    Study(
        "buttons",
        "Figure 10",
        "CPO with and without MICE on the harder button tasks.",
        "MICE keeps the limit better, at a comparable return.",
        _algorithms("cpo", "mice-cpo"),
        BUTTONS,
    ),
    Study(
        "twin-critics",
        "Figures 11 and 12",
        "PIDLag with one cost critic, with the larger of two, and with MICE: bias, return and cost.",
        "Two critics reduce the underestimation but do not remove it; MICE does, and keeps the limit better.",
        _algorithms("pid-lag", "pid-lag-twin", "mice-pid"),
        GOALS,
        ("bias", "curves", "bars"),
    ),
    Study(
        "projection",
        "Figure 13",
        "MICE-CPO with and without its random projection, and the training time of each.",
        "The projection shortens training substantially, at the same return and safety.",
        _algorithms("mice-cpo", "mice-cpo-no-projection"),
        GYM,
        ("curves", "time"),
    ),
    Study(
        "limit",
        "Ours",
        "Who stays under the limit while learning: return against cost, and violations.",
        "mice-salient and trpo-pid exceed the limit in about a tenth of the iterations.",
        (
            *_algorithms("trpo-pid", "mice-salient"),
            # How much of their return is due to what they see and how they start, and how much to their loop.
            Variant("trpo-pid", "trpo-pid, plain lidar", {"near_lidar": False}),
            Variant("cpo", "cpo, near lidar", {"near_lidar": True}),
            Variant("cpo", "cpo, shared noise", {"policy": {"share_noise": True}}),
            Variant("mice-cpo", "mice-cpo, near lidar", {"near_lidar": True}),
            *_algorithms("cpo", "mice-cpo", "pid-lag", "mice-pid", "c-trpo", "sb-trpo", "cup", "saute", "simmer-pid"),
        ),
        ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", *MUJOCO[:2], "SafetyHopperVelocity-v1"),
        ("frontier", "curves", "bars"),
    ),
    Study(
        "baselines",
        "Ours",
        "Every algorithm at one length on a navigation and a velocity task: whether one has become worse.",
        "Baselines reach what others publish for them at the same length; `make bench-learning` compares.",
        _algorithms(*BASELINES),
        ("SafetyPointGoal1-v0", "SafetyHalfCheetahVelocity-v1"),
    ),
)

STUDIES: Mapping[str, Study] = {study.name: study for study in _ALL}


def get_study(name: str) -> Study:
    """The study of that name, or `UsageError`."""
    if name not in STUDIES:
        raise UsageError(f"study: unknown study {name!r}; the known ones are {', '.join(STUDIES)}.")
    return STUDIES[name]
