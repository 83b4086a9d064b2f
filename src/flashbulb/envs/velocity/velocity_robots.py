"""The six robots of the velocity tasks as a table, and their MuJoCo models.

The numbers are those of Gymnasium's v4 MuJoCo tasks with the speed limits that Safety-Gymnasium adds; the
models are the XML files that Gymnasium ships.
"""

from __future__ import annotations

import enum
import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import mujoco
import numpy as np

Array = np.ndarray
DynamicsKind = Literal["planar", "spatial"]


class Place(enum.IntEnum):
    """What the velocity is the difference of."""

    ROOT = 0  # the first two coordinates
    TORSO = 1  # of the field `xpos`
    CENTRE_OF_MASS = 2  # of the field `xipos`


class Within(NamedTuple):
    """Entries of (qpos, qvel) that a healthy robot keeps within bounds."""

    first: int
    end: int | None  # None: to the last of qvel
    low: float  # the bounds are within
    high: float


def between(low: float, high: float) -> tuple[float, float]:
    """The bounds of what lies between the two numbers and is neither of them."""
    return float(np.nextafter(low, np.inf)), float(np.nextafter(high, -np.inf))


LARGEST = float(np.finfo(np.float64).max)  # of what is finite


def uniform_noise(rng: np.random.Generator, scale: float, size: int) -> Array:
    return rng.uniform(-scale, scale, size)


def normal_noise(rng: np.random.Generator, scale: float, size: int) -> Array:
    return scale * rng.standard_normal(size)


@dataclass(frozen=True)
class VelocityRobot:
    """Constants of one task. Reward = forward_weight * x velocity + healthy_reward - control_weight * |a|^2."""

    xml: str
    substeps: int
    speed_limit: float  # cost 1 above it
    control_weight: float
    reset_noise: float
    forward_weight: float = 1.0
    healthy_reward: float = 0.0
    hidden: int = 1  # leading coordinates that are not observed
    velocity_clip: float = np.inf  # of the observed joint velocities
    planar_speed: bool = False  # whether the limit is on the speed in the plane, or along x
    place: Place = Place.ROOT
    velocity_noise: Callable[[np.random.Generator, float, int], Array] = uniform_noise
    healthy: tuple[Within, ...] = ()
    position_field: str | None = None  # MjData field that `place` reads
    observed_fields: tuple[str, ...] = ()  # MjData fields at the end of the observation
    free_root: bool = False  # whether qpos[3:7] is a quaternion
    dynamics: DynamicsKind | None = None  # what moves it in place of MuJoCo: `planar_motion`, `spatial_motion`

    def speed(self, velocity: Array) -> Array:
        """What the limit is on, of velocities (n, 2)."""
        return np.sqrt(velocity[:, 0] ** 2 + velocity[:, 1] ** 2) if self.planar_speed else velocity[:, 0]


ROBOTS: dict[str, VelocityRobot] = {
    "Ant": VelocityRobot(
        xml="ant.xml",
        substeps=5,
        speed_limit=2.6222,
        control_weight=0.5,
        reset_noise=0.1,
        healthy_reward=1.0,
        hidden=2,
        planar_speed=True,
        place=Place.TORSO,
        velocity_noise=normal_noise,
        healthy=(Within(0, None, -LARGEST, LARGEST), Within(2, 3, 0.2, 1.0)),
        position_field="xpos",
        free_root=True,
        dynamics="spatial",
    ),
    "HalfCheetah": VelocityRobot(
        xml="half_cheetah.xml",
        substeps=5,
        speed_limit=3.2096,
        control_weight=0.1,
        reset_noise=0.1,
        velocity_noise=normal_noise,
        dynamics="planar",
    ),
    "Hopper": VelocityRobot(
        xml="hopper.xml",
        substeps=4,
        speed_limit=0.7402,
        control_weight=1e-3,
        reset_noise=5e-3,
        healthy_reward=1.0,
        velocity_clip=10.0,
        healthy=(
            Within(2, None, *between(-100, 100)),
            Within(1, 2, between(0.7, 1)[0], np.inf),
            Within(2, 3, *between(-0.2, 0.2)),
        ),
        dynamics="planar",
    ),
    "Humanoid": VelocityRobot(
        xml="humanoid.xml",
        substeps=5,
        speed_limit=1.4149,
        control_weight=0.1,
        reset_noise=1e-2,
        forward_weight=1.25,
        healthy_reward=5.0,
        hidden=2,
        planar_speed=True,
        place=Place.CENTRE_OF_MASS,
        healthy=(Within(2, 3, *between(1.0, 2.0)),),
        position_field="xipos",
        observed_fields=("cinert", "cvel", "qfrc_actuator", "cfrc_ext"),
        free_root=True,
    ),
    "Walker2d": VelocityRobot(
        xml="walker2d.xml",
        substeps=4,
        speed_limit=2.3415,
        control_weight=1e-3,
        reset_noise=5e-3,
        healthy_reward=1.0,
        velocity_clip=10.0,
        healthy=(Within(1, 2, *between(0.8, 2.0)), Within(2, 3, *between(-1.0, 1.0))),
        dynamics="planar",
    ),
    "Swimmer": VelocityRobot(
        xml="swimmer.xml",
        substeps=4,
        speed_limit=0.2282,
        control_weight=1e-4,
        reset_noise=0.1,
        hidden=2,
    ),
}


def load_model(robot: VelocityRobot) -> mujoco.MjModel:
    """Gymnasium's model, with settings under which current MuJoCo moves it as MuJoCo 2.3.3 did."""
    assets = importlib.resources.files("gymnasium") / "envs" / "mujoco" / "assets"
    spec = mujoco.MjSpec.from_file(str(assets / robot.xml))
    for geom in spec.geoms:
        geom.margin /= 2  # the margin of a pair was the larger of the two and is now their sum
    spec.option.tolerance = 1e-12  # the solver now stops earlier at the same tolerance
    total_mass = spec.compiler.settotalmass
    spec.compiler.settotalmass = -1  # deprecated in MuJoCo; the two calls below do the same
    model = spec.compile()
    if total_mass > 0:
        mujoco.mj_setTotalmass(model, total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model
