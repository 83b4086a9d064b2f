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

Named = Annotated[str, tyro.conf.Fixed, tyro.conf.Suppress]  # said by position on the command line


@dataclass(frozen=True)
class PolicyConfig:
    """The actor: a tanh network for the mean of a Gaussian, or for the logits of a categorical."""

    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers."""
    initial_log_std: float = 0.0
    """Logarithm of the standard deviation at the start (Box actions, scaled to [-1, 1])."""
    final_log_std: float = 10.0
    """Ceiling of it in the second half of the run, sinking there linearly from `initial_log_std` in the first; one
    above the start is none. Noise of 0.6 times the size cost a trained agent 3 less and earned it 1.6 more."""


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
    replay: int = 0
    """Batches before this one, with the targets they had, that the critics are fitted to as well."""
    decay: bool = True
    """Whether the step size decays linearly to 0 over the run (no peer's critic does)."""


@dataclass(frozen=True)
class TrustRegionConfig:
    """CPO's step (Appendix A.1)."""

    kl: float = 0.01
    """Size of the trust region, phi."""
    cg_iterations: int = 15
    """Conjugate-gradient iterations for H^-1 g and H^-1 b."""
    damping: float = 0.1
    """Added to the diagonal of H."""
    fisher_states: int = 5_000
    """States that H is averaged over, a fixed random subset of the batch (0: all). A quarter of the states gives
    nearly the same step at a third of the time; the line search measures KL on all of them."""
    search_steps: int = 20
    """Shortenings that the line search tries before it gives up and changes nothing."""
    search_decay: float = 0.8
    """Factor of each shortening."""
    recover: Literal["violated", "infeasible"] = "violated"
    """When to step for cost alone: as soon as the constraint is violated (the paper's appendix), or only
    when no step in the trust region can satisfy it (CPO)."""
    decay: float = 0.0
    """Share of `kl` that a Lagrangian step's region has lost at the end of the run, linearly."""
    momentum: float = 0.0
    """Weight of the past in the moving averages of both gradients that a Lagrangian step follows: 0.8 is a batch nine
    times as large, for policies that are a few steps older."""
    reach: Literal["damped", "full"] = "damped"
    """Length of a Lagrangian step: to the region's edge in the damped metric, which stops short of it, or in the KL's."""
    barrier: float = 1000.0
    """C-TRPO's weight of the divergence that grows without bound at the limit, per unit of cost per step: the authors'
    1 per unit of the cost of an episode of a thousand steps."""
    share: float = 0.75
    """SB-TRPO, beyond the limit: this share of the largest possible drop in cost, the rest of the step for reward."""
    scale: Literal["episode", "step"] = "step"
    """Constraint value c in CPO's linear model: the excess of an episode divided by its length, which is consistent
    with b (safety-starter-agents), or the excess itself (OmniSafe, the authors' code). With the latter CPO is all or
    nothing, and failed to learn on one of three seeds of a corridor with a known solution (tests/learn/corridor.py)."""


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
    view: Literal["observation", "salient"] = "observation"
    """What the projection sees: the observation (the paper), or, ours, one with sorted lidars and every entry weighed
    by how well it tells unsafe states from others (`memory/salience.py`)."""
    exclude_self: bool = False
    """Whether a stored state ignores its own entry when its intrinsic cost is computed."""
    window: int = 1
    """Iterations whose unsafe states are kept."""
    max_states: int = 20_000
    """Hard cap; the newest are kept."""
    criterion: Literal["cost", "return"] = "cost"
    """Which states are unsafe: those that cost something, or (for noisy costs) those whose discounted cost along the
    sampled trajectory exceeds `threshold`."""
    threshold: float = 1.0
    """Discounted cumulative cost above which a state is unsafe, with the criterion `return`."""
    offline: str | None = None
    """Data set whose unsafe states join the memory: an .npz or .hdf5 file with observations, actions and costs, or
    the id of a Minari data set."""
    offline_clip: float = 10.0
    """No state of the data set weighs more than this many average ones."""
    snapshots: int = 4
    """How many memories, evenly spaced over the run, are kept for `flashbulb memory`."""


@dataclass(frozen=True)
class BalanceConfig:
    """Balancing factor beta (Proposition 4.1)."""

    initial: float = 5.0
    """beta_0 (the authors' intrinsic factor)."""
    rate: float = 0.005
    """alpha, the step by which the measured bias corrects beta. At ten times this beta was 0 after fifteen
    iterations, because a critic that learned from beta c^I overestimates by construction (docs/method.md)."""
    discount: float = 0.99
    """gamma of gamma^n, per iteration."""
    margin: float = 1.0
    """Share of the intrinsic return I that is taken off the limit: 1 is Theorem 2's d - I; at 0 only the critic and
    the advantages know of c^I, and most of MICE's effect is gone (docs/method.md)."""
    bias: Literal["return", "td"] = "return"
    """What V_C is held against for its bias eps_n: the discounted cost along the sampled trajectory (the paper), or
    one step of it and V_C after that, which makes eps_n the TD error (the authors' code)."""


@dataclass(frozen=True)
class ProximalConfig:
    """The actor's clipped gradient steps (PPO), and CUP's projection."""

    learning_rate: float = 3e-4
    """Adam step size; it decays linearly to 0 over the run, as the critics' does."""
    passes: int = 40
    """Most passes over the batch in each iteration (not in the paper's table; all peers use 40)."""
    minibatch: int = 64
    """States per gradient step."""
    clip: float = 0.2
    """The probability ratio counts no further than this from 1."""
    kl: float = 0.01
    """Passes end once the mean KL from the policy that sampled exceeds this ("trust region bound")."""
    max_grad_norm: float = 40.0
    """Gradients longer than this are shortened to it."""


@dataclass(frozen=True)
class PidConfig:
    """The multiplier as a PID controller of the excess Delta = J_C + I - d (Appendix A.2).

    The paper gives no gains; these are the peers'. Peers also smooth Delta (0.95) and difference costs ten
    iterations apart, which reacts to a violation twenty iterations late; the paper's formula does neither.
    """

    proportional: float = 0.1
    """K_P, per unit of episode cost."""
    integral: float = 0.01
    """K_I."""
    derivative: float = 0.01
    """K_D."""
    smooth_proportional: float = 0.0
    """Weight of the past in a moving average of Delta for the proportional term; 0 is none."""
    smooth_derivative: float = 0.0
    """Weight of the past in a moving average of the cost for the derivative term; 0 is none."""
    delay: int = 1
    """Iterations over which the derivative term takes its difference."""
    initial: float = 1e-3
    """lambda before anything was learned: K_I times the integral at the start."""
    maximum: float = 100.0
    """Cap of lambda, and of the integral's share in it (anti-windup). At 100 the reward has a hundredth's say."""


@dataclass(frozen=True)
class IntegralConfig:
    """The integral of the excess, fed back into the limit that CPO's step sees."""

    gain: float = 0.0
    """What an excess of 1 adds to it per iteration; 0 turns it off."""
    share: float = 1.0
    """Bound of it, as a share of the limit, on both sides."""


@dataclass(frozen=True)
class MarginConfig:
    """How far below the limit the loop aims, so that an iteration exceeds it as often as the user allows."""

    violations: float = 0.5
    """How often an iteration may exceed the limit in the long run; from 0.5 on there is no margin."""
    quantile: bool = True
    """Whether z starts at the normal quantile of `violations`, or at 0 so that the reward is learned first."""
    rate: float = 0.05
    """Step of z, the margin in standard errors of J_C: z <- z + rate (1[J_C > d] - violations)."""
    largest: float = 4.0
    """Bound of z."""
    share: float = 0.5
    """Bound of the margin, as a share of the limit."""
    smooth: float = 0.9
    """Weight of the past in the moving average of the standard error."""


@dataclass(frozen=True)
class AscentConfig:
    """The multiplier by gradient ascent, lambda <- (lambda + eta Delta)_+ (PPO-Lagrangian, CUP)."""

    learning_rate: float = 0.035
    """eta, per unit of episode cost."""
    rule: Literal["gradient", "adam"] = "gradient"
    """How lambda moves: by eta times the excess, or by Adam's step of size eta (the peers)."""
    initial: float = 1e-3
    """lambda at the start."""
    maximum: float = 100.0
    """Cap of lambda. A peer's CUP has 2, at which its projection hardly moves where cost advantages are small."""


@dataclass(frozen=True)
class ConstantConfig:
    """The constant that stands in for beta c^I in the ablation (Figure 6)."""

    value: float = 5.0
    """How much; the recipe `constant-N-X` sets it to N."""
    of: Literal["value", "step"] = "value"
    """What it is added to: the cost value (the figure's caption), or the cost of each step. The latter adds a
    hundred times as much to the value, so that even 3 exceeds a limit of 25 whatever the policy does."""


@dataclass(frozen=True)
class BudgetConfig:
    """The cost budget in the state (Saute) and its schedule (Simmer)."""

    discount: float = 1.0
    """Discount of the budget. At 1 it means what the cost limit means; a peer's 0.999 turns a limit of 25
    into one of about 16 for costs that come evenly."""
    unsafe_reward: float = -0.2
    """Reward of every step after the budget is spent. Peers have -1, and -0.2 on navigation tasks: anything below
    what safe behaviour earns will do, and a small one keeps V_R on the task's scale."""
    start: float = 0.5
    """Simmer's first budget, as a share of the cost limit."""
    lowest: float = 0.1
    """Simmer's smallest budget, as a share of the cost limit."""
    proportional: float = 0.05
    """K_P of Simmer's schedule: the budget grows by this share of what the last episodes left of it. A peer's 5e-4
    moves the budget by a hundredth per iteration, which is no schedule."""
    integral: float = 1e-3
    """K_I of Simmer's schedule."""
    derivative: float = 0.0
    """K_D of Simmer's schedule."""
    smooth: float = 0.0
    """Weight of the past in a moving average of what was left (Polyak); a peer has 0.995."""


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
    vectorise: Literal["processes", "threads", "serial"] = "processes"
    """How an environment of your own is run `num_envs` times; results do not depend on it."""
    runs_dir: Path = Path("runs")
    """Where the run's directory is made."""
    name: str | None = None
    """Name of the run's directory (default: recipe, task, seed and time)."""
    checkpoint_every: int = 10
    """Iterations between checkpoints."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints stay; the best that kept the limit stays as well."""
    bias_every: int = 0
    """Iterations between measurements of the cost critic's true bias, by rollouts from visited states (0: none)."""
    bias_states: int = 50
    """From how many states each of them rolls out: half drawn from all, half from those that meet a cost soon."""
    wandb: bool = False
    """Report to Weights & Biases as well (needs `pip install flashbulb[wandb]`; WANDB_MODE=offline keeps it here)."""
    stagger: bool = False
    """Whether members begin at different phases of an episode, so that every batch has all of them."""
    cost_estimate: Literal["episodes", "steps"] = "episodes"
    """J_C from the episodes that ended in the batch, or from all of its steps: cost / episodes that fit into them."""
    warm_up: int = 0
    """Vector steps under the first policy from which the normaliser learns before the first iteration."""
    cost_scale: Literal["raw", "standard"] = "raw"
    """Cost advantages that a multiplier weighs: centred, or standardised as the reward's are."""
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
    proximal: ProximalConfig = field(default_factory=ProximalConfig)
    pid: PidConfig = field(default_factory=PidConfig)
    ascent: AscentConfig = field(default_factory=AscentConfig)
    margin: MarginConfig = field(default_factory=MarginConfig)
    integral: IntegralConfig = field(default_factory=IntegralConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    balance: BalanceConfig = field(default_factory=BalanceConfig)
    constant: ConstantConfig = field(default_factory=ConstantConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)

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
