"""The configuration of a run: documented dataclasses with their bounds, from which the command line is made.

Defaults are those of the paper's Table 2; a field that departs from it gives the reason. An algorithm
(`algorithms/registry.py`) may replace defaults, and the user may replace both. `validation.py` enforces the bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval
from tyro.conf import Fixed, Suppress, arg

Named = Annotated[str, Fixed, Suppress]  # given by position on the command line
PositiveInt = Annotated[int, Ge(1), arg(metavar="INT>=1")]
NonNegativeInt = Annotated[int, Ge(0), arg(metavar="INT>=0")]
Positive = Annotated[float, Gt(0), arg(metavar="FLOAT>0")]
NonNegative = Annotated[float, Ge(0), arg(metavar="FLOAT>=0")]
Fraction = Annotated[float, Interval(ge=0, le=1), arg(metavar="FLOAT in [0,1]")]


@dataclass(frozen=True)
class PolicyConfig:
    """The actor: a tanh network for the mean of a Gaussian, or for the logits of a categorical."""

    hidden: tuple[PositiveInt, ...] = (64, 64)
    """Sizes of the hidden layers."""
    initial_log_std: float = 0.0
    """Logarithm of the standard deviation at the start (Box actions, scaled to [-1, 1])."""
    share_noise: bool = False
    """Whether n > 2 actions start with sqrt(2 / n) of that deviation each, so that a robot with many joints does not
    start with more noise than one with two (docs/staying_under_the_limit.md)."""
    least_std: NonNegative = 0.0
    """The standard deviation of no action falls below this (Box actions, scaled to [-1, 1])."""


@dataclass(frozen=True)
class CriticConfig:
    """The value networks V_R and V_C."""

    hidden: tuple[PositiveInt, ...] = (64, 64)
    """Sizes of the hidden layers."""
    learning_rate: Positive = 3e-4
    """Adam step size."""
    passes: PositiveInt = 10
    """Passes over the batch in each iteration."""
    minibatch: PositiveInt = 64
    """States per gradient step."""
    l2: NonNegative = 1e-3
    """Weight of the squared norm of the parameters ("normalization coefficient" in the paper)."""
    max_grad_norm: Positive = 40.0
    """Gradients are clipped to this norm."""
    decay: bool = True
    """Whether the step size decays linearly to 0 over the run, as the actor's does (peers keep it constant)."""
    backend: Literal["compiled", "optax"] = "compiled"
    """What fits them: compiled loops around BLAS, or optax under JAX, which is slower; the same up to rounding."""


@dataclass(frozen=True)
class TrustRegionConfig:
    """The steps of CPO (Appendix A.1) and of other trust-region algorithms."""

    kl: Positive = 0.01
    """Size of the trust region, phi."""
    cg_iterations: PositiveInt = 15
    """Conjugate-gradient iterations for H^-1 g and H^-1 b."""
    damping: NonNegative = 0.1
    """Added to the diagonal of H."""
    fisher_states: NonNegativeInt = 5_000
    """States that H is averaged over, a fixed random subset of the batch (0: all). A quarter of the states gives
    nearly the same step in a third of the time; the line search measures KL on all states."""
    search_steps: PositiveInt = 20
    """Step lengths that the line search tries; if none is accepted, the policy stays as it is."""
    search_decay: Fraction = 0.8
    """Factor between successive step lengths."""
    decay: Fraction = 0.0
    """Share of `kl` that the region of a Lagrangian step (TRPO, TRPO-PID) has lost at the end of the run, linearly."""
    recover: Literal["violated", "infeasible"] = "violated"
    """When to step for cost alone: as soon as the constraint is violated (the paper's appendix), or only
    when no step in the trust region can satisfy it (CPO)."""
    barrier: Positive = 1000.0
    """C-TRPO: weight of the divergence that grows without bound at the limit, per unit of cost per step. It is the
    authors' 1 per unit of the cost of an episode, for episodes of a thousand steps."""
    hysteresis: Fraction = 0.8
    """C-TRPO: recovery ends when the cost is below this share of the limit."""
    share: Fraction = 0.75
    """SB-TRPO: outside the limit, this share of the largest possible drop in cost; the rest is for reward."""
    scale: Literal["episode", "step"] = "step"
    """Constraint value c in CPO's linear model: the excess of an episode divided by its length, which is consistent
    with b (safety-starter-agents), or the excess itself (OmniSafe, the authors' code). With the latter CPO failed to
    learn on one of three seeds of a corridor with a known solution (tests/algorithms/corridor.py)."""


@dataclass(frozen=True)
class MemoryConfig:
    """Flashbulb memory and intrinsic cost (section 4.2)."""

    neighbours: PositiveInt = 10
    """k of the k nearest unsafe states."""
    xi: Positive = 1e-3
    """Constant of the kernel K = xi / (l^2 + xi)."""
    kernel: Literal["squared", "linear"] = "squared"
    """Whether K falls with l^2 (equation 5) or with l, as xi / (max(l - 0.008, 0) + xi): the authors' code, which has
    xi 1e-4 and the distance `own-mean`."""
    normalise: Literal["sqrt-k", "none", "max", "deviation"] = "sqrt-k"
    """What c^I, the root of the sum of K, is divided by: its largest possible value, nothing (equation 4 as printed,
    and the authors' code), or the largest value or the standard deviation of the run so far. By sqrt-k, a state's own
    entry is worth less the larger k is: 1, 0.45, 0.32, 0.22 for k = 1, 5, 10, 20."""
    embedding: NonNegativeInt = 8
    """Dimensions of the random projection; 0 turns it off."""
    distance: Literal["raw", "mean", "own-mean"] = "raw"
    """Squared distance in the kernel: as it is (the paper as printed), over the running mean of the
    k-nearest squared distances (NGU), or with l over the mean of the k nearest of the same state (part of the
    authors' code, whose kernel is `linear`)."""
    view: Literal["observation", "salient"] = "observation"
    """Input of the projection: the observation (the paper), or, as an extension of ours, the observation with sorted
    lidars and every entry weighted by how well it separates unsafe states from others (`memory/salience.py`)."""
    exclude_self: bool = False
    """Whether a stored state ignores its own entry when its intrinsic cost is computed."""
    recall: Literal["batch", "previous", "causal"] = "batch"
    """Which unsafe states a state is compared with: those of its own batch and window (the order of Algorithm 1), of
    the iterations before only (section 4.2's "from the previous iteration"), or those that its own environment met
    until then (the authors' code, `memory/causal.py`; it has `queue` in place of `window` and `max_states`)."""
    queue: PositiveInt = 100
    """Unsafe states that each environment keeps, with the recall `causal`."""
    window: PositiveInt = 1
    """Number of latest iterations whose unsafe states are kept."""
    max_states: PositiveInt = 20_000
    """Capacity; the newest states are kept."""
    criterion: Literal["cost", "return"] = "cost"
    """Which states are unsafe: those with a positive cost, or (for noisy costs) those whose discounted cost along the
    sampled trajectory exceeds `threshold`."""
    threshold: NonNegative = 1.0
    """Discounted cumulative cost above which a state is unsafe, with the criterion `return`."""
    offline: str | None = None
    """Data set whose unsafe states join the memory: an .npz or .hdf5 file with observations, actions and costs, or
    the id of a Minari data set."""
    offline_clip: Positive = 10.0
    """Largest weight of a state of the data set, relative to the mean weight."""
    snapshots: NonNegativeInt = 4
    """Snapshots of the memory to save for `flashbulb memory`, evenly spaced over the run."""


@dataclass(frozen=True)
class BalanceConfig:
    """Balancing factor beta (Proposition 4.1)."""

    initial: NonNegative = 5.0
    """beta_0 (the authors' intrinsic factor)."""
    rate: NonNegative = 0.005
    """alpha, the step by which the measured bias corrects beta. At ten times this beta was 0 after fifteen
    iterations, because a critic that learned from beta c^I overestimates by construction (docs/tuning.md)."""
    discount: Fraction = 0.99
    """gamma of gamma^n, per iteration."""
    margin: NonNegative = 1.0
    """Share of the intrinsic return I that is taken off the limit: 1 is Theorem 2's d - I; at 0 only the critic and
    the advantages contain c^I, and most of MICE's effect is gone (docs/tuning.md)."""
    factor: Literal["common", "state"] = "common"
    """One factor for all states (Proposition 4.1 with the best correction for all of them), or one per state from the
    TD error of its own target, beta c^I included, smoothed and not clipped (the authors' code,
    `algorithms/state_factor.py`; they have a `rate` of 0.001). The latter does not use `bias`."""
    smooth: Fraction = 0.1
    """Weight of a path's mean factor in the next one, with a factor per state."""
    unit: Literal["discounted", "episode", "start"] = "discounted"
    """I as the mean beta c^I over 1 - gamma (a hundred steps of it at 0.99), as its sum over an episode, which is what
    J_C and the limit are, or as the discounted sum along each path (Theorem 2). Where beta c^I comes evenly, the second
    is T (1 - gamma) times the first in episodes of T steps: ten times, for which `initial` 0.5 is what 5 is to it."""
    bias: Literal["return", "td"] = "return"
    """What V_C is compared with for its bias eps_n: the discounted cost along the sampled trajectory (the paper), or
    one step of it and V_C after that, which makes eps_n the TD error of the extrinsic cost."""


@dataclass(frozen=True)
class ProximalConfig:
    """The actor's clipped gradient steps (PPO), and CUP's projection."""

    learning_rate: Positive = 3e-4
    """Adam step size; it decays linearly to 0 over the run, as the critics' does."""
    passes: PositiveInt = 40
    """Maximum passes over the batch in each iteration (not in the paper's table; peers use 40)."""
    minibatch: PositiveInt = 64
    """States per gradient step."""
    clip: Positive = 0.2
    """Clip range of the probability ratio around 1."""
    kl: Positive = 0.01
    """Passes stop early once the mean KL from the sampling policy exceeds this ("trust region bound")."""
    max_grad_norm: Positive = 40.0
    """Gradients are clipped to this norm."""
    backend: Literal["compiled", "optax"] = "compiled"
    """What descends: compiled loops around BLAS, or optax under JAX, which is slower; the same up to rounding but for
    the order of minibatches."""


@dataclass(frozen=True)
class PidConfig:
    """The multiplier as a PID controller of the excess Delta = J_C + I - d (Appendix A.2).

    The paper gives no gains; these are the peers'. Peers also smooth Delta (0.95) and difference costs ten
    iterations apart, which reacts to a violation twenty iterations late; the paper's formula does neither.
    """

    proportional: NonNegative = 0.1
    """K_P, per unit of episode cost."""
    integral: NonNegative = 0.01
    """K_I."""
    derivative: NonNegative = 0.01
    """K_D."""
    smooth_proportional: Fraction = 0.0
    """Weight of the past in a moving average of Delta for the proportional term (0: no smoothing)."""
    smooth_derivative: Fraction = 0.0
    """Weight of the past in a moving average of the cost for the derivative term (0: no smoothing)."""
    delay: PositiveInt = 1
    """Iterations over which the derivative term takes its difference."""
    initial: NonNegative = 1e-3
    """lambda at the start: K_I times the initial integral."""
    maximum: Positive = 100.0
    """Cap of lambda, and of the integral's share in it (anti-windup)."""


@dataclass(frozen=True)
class MarginConfig:
    """How far below the limit the controller aims when `violations` is given (`algorithms/margin.py`)."""

    start: Literal["quantile", "cautious", "zero"] = "quantile"
    """Where z, the margin in standard deviations of J_C, starts: at the normal quantile of `violations`, at that of a
    quarter of them, so that the frequency is approached from below, or at 0."""
    rate: NonNegative = 0.05
    """Step of z per iteration: z <- z + rate (1[J_C > d] - violations)."""
    maximum: NonNegative = 4.0
    """Upper bound of z."""
    share: Fraction = 0.5
    """Upper bound of the margin, as a share of the limit."""
    smooth: Fraction = 0.9
    """Weight of the past in the moving averages of that standard deviation."""
    noise: Literal["sampling", "observed"] = "sampling"
    """The standard deviation that z multiplies: the standard error of J_C, which knows of the episodes sampled, or
    ("observed") the larger of that and what J_C did from one iteration to the next, which knows of the steps too."""


@dataclass(frozen=True)
class IntegralConfig:
    """The integral of the excess, added to the constraint of CPO's step and its kin."""

    gain: NonNegative = 0.0
    """What an excess of 1 adds to it per iteration (0: no integral)."""
    share: Fraction = 1.0
    """Bound of its size, as a share of the limit."""


@dataclass(frozen=True)
class AscentConfig:
    """The multiplier by gradient ascent, lambda <- (lambda + eta Delta)_+ (PPO-Lagrangian, CUP)."""

    learning_rate: NonNegative = 0.035
    """eta, per unit of episode cost."""
    rule: Literal["gradient", "adam"] = "gradient"
    """How lambda moves: by eta times the excess, or by Adam's step of size eta (peers), whatever the excess."""
    initial: NonNegative = 1e-3
    """lambda at the start."""
    maximum: Positive = 100.0
    """Cap of lambda."""


@dataclass(frozen=True)
class ConstantConfig:
    """The constant that replaces beta c^I in the ablation (Figure 6)."""

    value: NonNegative = 5.0
    """The constant; the algorithm `constant-N-X` sets it to N."""
    of: Literal["value", "step", "intrinsic"] = "value"
    """What it is added to: the cost value (the figure's caption), or the cost of each step. The latter adds a
    hundred times as much to the value, so that even 3 exceeds a limit of 25 for every policy. Or it takes the place of
    c^I alone ("the intrinsic cost in MICE is replaced by fixed constants"), with the balancing factor before it."""


@dataclass(frozen=True)
class BudgetConfig:
    """The cost budget in the state (Saute) and its schedule (Simmer)."""

    discount: Annotated[float, Interval(gt=0, le=1), arg(metavar="FLOAT in (0,1]")] = 1.0
    """Discount of the budget. At 1 it means what the cost limit means; a peer's 0.999 turns a limit of 25
    into one of about 16 for costs that come evenly."""
    unsafe_reward: float = -0.2
    """Reward of every step after the budget is spent. Peers have -1, and -0.2 on navigation tasks: anything below
    what safe behaviour earns will do, and a small one keeps V_R on the task's scale."""
    start: Fraction = 0.5
    """Simmer's first budget, as a share of the cost limit."""
    lowest: Fraction = 0.1
    """Simmer's smallest budget, as a share of the cost limit."""
    proportional: NonNegative = 0.05
    """K_P of Simmer's schedule: the budget grows by this share of what the last episodes left of it. A peer's 5e-4
    moves the budget by only a hundredth per iteration."""
    integral: NonNegative = 1e-3
    """K_I of Simmer's schedule."""
    derivative: NonNegative = 0.0
    """K_D of Simmer's schedule."""
    smooth: Fraction = 0.0
    """Weight of the past in a moving average of what was left (Polyak); a peer has 0.995."""


@dataclass(frozen=True)
class FocopsConfig:
    """FOCOPS's own setting; its distance from the sampling policy is `proximal.kl`."""

    temperature: Positive = 1.5
    """T of the policy that it approaches, pi_k exp(A / T) (its authors' lambda)."""


@dataclass(frozen=True)
class P3oConfig:
    """P3O's own setting."""

    kappa: NonNegative = 20.0
    """Weight of the exceeded limit, per unit of cost per step."""


@dataclass(frozen=True)
class CrpoConfig:
    """CRPO's own setting."""

    tolerance: float = 0.0
    """Excess of an episode's cost over the limit above which the step is for cost."""


@dataclass(frozen=True)
class LogBarrierConfig:
    """The multiplier as the slope of a logarithmic barrier, lambda = weight / (d - J_C - I) (IPO)."""

    weight: Positive = 1.0
    """Weight of log(d - J_C - I): 1 / t in its authors' notation, for episode costs."""
    maximum: Positive = 20.0
    """Cap of lambda, which it has outside the limit as well."""


@dataclass(frozen=True)
class Config:
    """The configuration of a run."""

    algorithm: Named
    """Name of the algorithm."""
    env: Named
    """Id of the task."""
    env_kwargs: Annotated[dict[str, Any], Fixed, Suppress] = field(default_factory=dict)
    """Arguments of what makes the environment, or parameters of our navigation tasks: values that JSON can hold."""
    plugins: Annotated[tuple[str, ...], Fixed, Suppress] = ()
    """Modules that registered the algorithm, its cost stream or the task, and that the run therefore needs."""
    seed: NonNegativeInt = 0
    """Seed of every random number of the run."""
    steps: PositiveInt = 10_000_000
    """Environment steps of the whole run."""
    cost_limit: NonNegative | dict[str, NonNegative] = 25.0
    """d: limit on the mean undiscounted cost of an episode; of several costs, the limit of each by its name."""
    violations: Fraction | None = None
    """How often an iteration may exceed the limit in the long run; a margin below the limit follows it (default: no
    margin, which is about half of the iterations)."""
    num_envs: PositiveInt = 20
    """Environments stepped as one batch."""
    steps_per_iteration: PositiveInt = 20_000
    """Environment steps sampled before each update."""
    stagger: bool = False
    """Whether environments start at different times of an episode, so that every batch has samples of all times."""
    warm_up: NonNegativeInt = 0
    """Vector steps under the first policy from which the normaliser learns before the first iteration."""
    near_lidar: bool = False
    """Whether networks and memory see lidar readings a second time, as exp((x - 1) / 0.05), which tells near things
    apart (`normaliser.py`). Tasks without a lidar are not changed by it."""
    cost_estimate: Literal["episodes", "steps"] = "episodes"
    """J_C from the episodes that ended in the batch, or from all its steps (cost over the episodes that fit into
    them). The latter is less noisy with many environments and short segments, and needs `stagger`."""
    cost_normalise: Literal["none", "scale", "standardise"] = "none"
    """Costs that the critic learns: as they are, over their running standard deviation, or minus their running mean as
    well (the authors' code). J_C and the limit stay as they are (`cost_units.py`)."""
    cost_advantage: Literal["centred", "standardised"] = "centred"
    """Cost advantages that a Lagrange multiplier weighs. Standardised, lambda has the same meaning for all tasks."""
    cost_after_end: Literal["none", "mean"] = "none"
    """What the cost critic expects after a fall, or whatever else terminates an episode: no further cost, or as much as
    in the mean over all states, so that falling is no way to save cost. J_C and the limit stay as they are."""
    threads: PositiveInt | None = None
    """Threads for physics and nearest neighbours (default: all cores); results do not depend on it."""
    physics: Literal["compiled", "rollout"] | None = None
    """How MuJoCo is called: from compiled code, or by `mujoco.rollout`, which is slower; results are the same (default:
    the variable FLASHBULB_PHYSICS, or compiled)."""
    vectorise: Literal["processes", "threads", "serial"] = "processes"
    """How `num_envs` copies of a Gymnasium environment are run; results do not depend on it."""
    step_timeout: Positive | None = None
    """Seconds that a step of a Gymnasium environment in a process may take before the run stops (default: no limit)."""
    runs_dir: Path = Path("runs")
    """Directory in which the run's directory is created."""
    name: str | None = None
    """Name of the run's directory (default: algorithm, task, seed and time)."""
    init_from: Path | None = None
    """Run, or checkpoint of one, whose policy, critics and normaliser this run starts from (default: none)."""
    checkpoint_every: PositiveInt = 10
    """Iterations between checkpoints."""
    keep_checkpoints: PositiveInt = 3
    """Newest checkpoints to keep; the best one within the limit is kept as well."""
    bias_every: NonNegativeInt = 0
    """Iterations between measurements of the cost critic's true bias, by rollouts from visited states (0: none)."""
    bias_states: PositiveInt = 50
    """States of each measurement: half drawn from all, half from those with a cost within ten steps. Half as many start
    states come on top."""
    wandb: bool = False
    """Log to Weights & Biases as well (needs `pip install flashbulb[wandb]`; WANDB_MODE=offline writes locally)."""
    gamma: Fraction = 0.99
    """Discount of rewards."""
    cost_gamma: Annotated[float, Interval(ge=0, lt=1), arg(metavar="FLOAT in [0,1)")] = 0.99
    """Discount of costs; below 1, for the discounted sum of intrinsic costs to be finite."""
    lam: Fraction = 0.95
    """GAE's lambda for rewards."""
    cost_lam: Fraction = 0.95
    """GAE's lambda for costs."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    trust_region: TrustRegionConfig = field(default_factory=TrustRegionConfig)
    proximal: ProximalConfig = field(default_factory=ProximalConfig)
    pid: PidConfig = field(default_factory=PidConfig)
    ascent: AscentConfig = field(default_factory=AscentConfig)
    margin: MarginConfig = field(default_factory=MarginConfig)
    integral: IntegralConfig = field(default_factory=IntegralConfig)
    focops: FocopsConfig = field(default_factory=FocopsConfig)
    p3o: P3oConfig = field(default_factory=P3oConfig)
    crpo: CrpoConfig = field(default_factory=CrpoConfig)
    log_barrier: LogBarrierConfig = field(default_factory=LogBarrierConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    balance: BalanceConfig = field(default_factory=BalanceConfig)
    constant: ConstantConfig = field(default_factory=ConstantConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)

    @property
    def limit(self) -> float:
        """d of the only cost, or of the one that is being looked at (`algorithms/learner.py` looks at one by one)."""
        assert not isinstance(self.cost_limit, dict)
        return self.cost_limit

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The names of several costs, in the order of their axis; none if there is one cost without a name."""
        return tuple(self.cost_limit) if isinstance(self.cost_limit, dict) else ()

    @property
    def horizon(self) -> int:
        """Vector steps per iteration."""
        return self.steps_per_iteration // self.num_envs

    @property
    def iterations(self) -> int:
        """Iterations needed for at least `steps` environment steps."""
        return math.ceil(self.steps / (self.horizon * self.num_envs))


def to_dict(config: Config) -> dict[str, Any]:
    """Return the configuration as plain values, for JSON."""
    plain: dict[str, Any] = dataclasses.asdict(config)
    plain["runs_dir"] = str(config.runs_dir)
    plain["init_from"] = None if config.init_from is None else str(config.init_from)
    return plain


def flat_settings(config: Config) -> dict[str, Any]:
    """Settings under their dotted names, as on the command line."""
    return dict(_flatten(to_dict(config), ""))


def _flatten(settings: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    return [
        item
        for name, value in settings.items()
        for item in (_flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)])
    ]
