"""Every number of a run in one place: documented dataclasses from which the command line is made.

Defaults are the paper's Table 2; where we depart, the field says why. A recipe (`recipes.py`) may replace
defaults; the user may replace both.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from flashbulb.errors import UsageError

Named = Annotated[str, tyro.conf.Fixed, tyro.conf.Suppress]  # said by position on the command line


@dataclass(frozen=True)
class PolicyConfig:
    """The actor: a tanh network for the mean of a Gaussian, or for the logits of a categorical."""

    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers."""
    initial_log_std: float = 0.0
    """Logarithm of the standard deviation at the start (Box actions, scaled to [-1, 1])."""


@dataclass(frozen=True)
class CriticConfig:
    """The value networks V_R and V_C, of the actor's shape of body."""

    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers."""
    learning_rate: float = 3e-4
    """Adam step size."""
    passes: int = 10
    """Passes over the batch in each iteration."""
    minibatch: int = 64
    """States per gradient step."""
    l2: float = 1e-3
    """Weight of the squared norm of the parameters ("normalization coefficient" in the paper)."""
    max_grad_norm: float = 40.0
    """Gradients longer than this are shortened to it."""


@dataclass(frozen=True)
class TrustRegionConfig:
    """CPO's step (Appendix A.1)."""

    kl: float = 0.01
    """Size of the trust region, phi."""
    cg_iterations: int = 15
    """Conjugate-gradient iterations for H^-1 g and H^-1 b."""
    damping: float = 0.1
    """Added to the diagonal of H."""
    search_steps: int = 20
    """Shortenings that the line search tries before it gives up and changes nothing."""
    search_decay: float = 0.8
    """Factor of each shortening."""
    recover: Literal["violated", "infeasible"] = "violated"
    """When to step for cost alone: as soon as the constraint is violated (the paper's appendix), or only
    when no step in the trust region can satisfy it (CPO)."""
    scale: Literal["episode", "step"] = "episode"
    """Constraint value c in CPO's linear model: the excess of an episode (OmniSafe, the authors' code), or
    that divided by the episode's length, which is consistent with b (safety-starter-agents)."""


@dataclass(frozen=True)
class MemoryConfig:
    """Flashbulb memory and intrinsic cost (section 4.2)."""

    neighbours: int = 10
    """k of the k nearest unsafe states."""
    xi: float = 1e-3
    """Constant of the kernel K = xi / (l^2 + xi)."""
    embedding: int = 8
    """Dimensions of the random projection; 0 turns it off."""
    distance: Literal["raw", "mean", "own-mean"] = "raw"
    """Squared distance that the kernel sees: as it is (the paper as printed), over the running mean of the
    k-nearest squared distances (NGU), or with l over its own top-k mean (the authors' code)."""
    exclude_self: bool = False
    """Whether a stored state ignores its own entry when its intrinsic cost is computed."""
    window: int = 1
    """Iterations whose unsafe states are kept."""
    max_states: int = 20_000
    """Hard cap; the newest are kept."""


@dataclass(frozen=True)
class BalanceConfig:
    """Balancing factor beta (Proposition 4.1)."""

    initial: float = 5.0
    """beta_0 (the authors' intrinsic factor)."""
    rate: float = 0.05
    """alpha, the step by which the measured bias corrects beta."""
    discount: float = 0.99
    """gamma of gamma^n, per iteration."""


@dataclass(frozen=True)
class Config:
    """A run."""

    recipe: Named
    """Which algorithm."""
    env: Named
    """Which task."""
    seed: int = 0
    """Everything random follows from it."""
    steps: int = 10_000_000
    """Environment steps in all."""
    cost_limit: float = 25.0
    """d: limit on the mean undiscounted cost of an episode."""
    num_envs: int = 20
    """Members of the batch of environments."""
    steps_per_iteration: int = 20_000
    """Environment steps sampled before each update."""
    threads: int | None = None
    """Threads for physics and nearest neighbours (default: all cores); results do not depend on it."""
    runs_dir: Path = Path("runs")
    """Where the run's directory is made."""
    name: str | None = None
    """Name of the run's directory (default: recipe, task, seed and time)."""
    checkpoint_every: int = 10
    """Iterations between checkpoints."""
    gamma: float = 0.99
    """Discount of rewards."""
    cost_gamma: float = 0.99
    """Discount of costs."""
    lam: float = 0.95
    """GAE's lambda for rewards."""
    cost_lam: float = 0.95
    """GAE's lambda for costs."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    trust_region: TrustRegionConfig = field(default_factory=TrustRegionConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    balance: BalanceConfig = field(default_factory=BalanceConfig)

    @property
    def horizon(self) -> int:
        """Vector steps per iteration."""
        return self.steps_per_iteration // self.num_envs

    @property
    def iterations(self) -> int:
        """Iterations that take at least the steps asked for."""
        return math.ceil(self.steps / (self.horizon * self.num_envs))


def to_dict(config: Config) -> dict[str, Any]:
    """Plain values only, for JSON."""
    plain: dict[str, Any] = dataclasses.asdict(config)
    plain["runs_dir"] = str(config.runs_dir)
    return plain


_POSITIVE_WHOLE = (
    "steps",
    "num_envs",
    "steps_per_iteration",
    "threads",
    "checkpoint_every",
    "critic.passes",
    "critic.minibatch",
    "trust_region.cg_iterations",
    "trust_region.search_steps",
    "memory.neighbours",
    "memory.window",
    "memory.max_states",
)
_POSITIVE = (
    "critic.learning_rate",
    "critic.max_grad_norm",
    "trust_region.kl",
    "memory.xi",
)
_NOT_NEGATIVE = (
    "cost_limit",
    "seed",
    "critic.l2",
    "trust_region.damping",
    "memory.embedding",
    "balance.initial",
    "balance.rate",
)
_UNIT_INTERVAL = ("gamma", "cost_gamma", "lam", "cost_lam", "trust_region.search_decay", "balance.discount")


def validate(config: Config) -> Config:
    """Return the config, or say in one sentence what is wrong with it."""

    def refuse(name: str, value: Any, allowed: str) -> None:
        raise UsageError(f"{name}: {value!r} is not allowed; it must be {allowed}.")

    def numbers(names: tuple[str, ...]) -> list[tuple[str, Any]]:
        return [(name, _lookup(config, name)) for name in names]

    for name, value in numbers(_POSITIVE_WHOLE):
        if value is not None and (int(value) != value or value < 1):
            refuse(name, value, "a whole number of at least 1")
    for name, value in numbers(_POSITIVE):
        if not (math.isfinite(value) and value > 0):
            refuse(name, value, "a finite number above 0")
    for name, value in numbers(_NOT_NEGATIVE):
        if not (math.isfinite(value) and value >= 0):
            refuse(name, value, "a finite number of at least 0")
    for name, value in numbers(_UNIT_INTERVAL):
        if not 0 <= value <= 1:
            refuse(name, value, "between 0 and 1")
    for name in ("policy.hidden", "critic.hidden"):
        if not all(size >= 1 for size in _lookup(config, name)):
            refuse(name, _lookup(config, name), "sizes of at least 1")
    if config.steps_per_iteration < config.num_envs:
        refuse("steps_per_iteration", config.steps_per_iteration, f"at least num_envs ({config.num_envs})")
    return config


def _lookup(config: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        config = getattr(config, part)
    return config
