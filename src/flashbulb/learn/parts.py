"""What a learner is made of: the choices that `recipes.py` combines and `learner.py` assembles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Recipe:
    """One learner as a combination of parts, and the defaults of `Config` that it changes."""

    summary: str
    actor: Literal["trust-region", "proximal", "proximal-projection"] = "trust-region"
    """How the policy steps: to the edge of a trust region, by clipped gradients (PPO), or by clipped gradients
    for reward followed by a projection for cost (CUP)."""
    multiplier: Literal["none", "dual", "barrier", "share", "pid", "ascent"] = "none"
    """What sets the price of cost: nothing (cost is ignored), the closed-form dual of CPO's quadratic model, a PID
    controller, or gradient ascent."""
    cost_stream: Literal["extrinsic", "memory", "constant"] = "extrinsic"
    """What the cost critic learns from: the task's cost, that plus beta c^I (MICE), or that plus a constant."""
    cost_critics: int = 1
    """How many; of several the maximum counts."""
    augmentation: Literal["none", "saute", "simmer"] = "none"
    """What the observation carries besides: nothing, what is left of the cost limit, or of a scheduled budget."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Config` whose default it changes; parts as dictionaries."""

    @property
    def heeds_cost_critic(self) -> bool:
        """Whether V_C has a say in the policy, and with it whatever is added to the cost stream."""
        return self.multiplier != "none"
