"""The six robots of the velocity tasks as a table, and their MuJoCo models.

The numbers are those of Gymnasium's v4 MuJoCo tasks with the speed limits that Safety-Gymnasium adds; the
models are the XML files that Gymnasium ships.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

if TYPE_CHECKING:
    from flashbulb.envs.velocity import VelocityPhysics

Array = np.ndarray


def root_position(physics: VelocityPhysics) -> Array:
    """The first two coordinates; tasks in a vertical plane look at the first only."""
    return physics.qpos[:, :2].copy()


def torso_position(physics: VelocityPhysics) -> Array:
    """The torso's position in the integrator's last stage (see `VelocityPhysics`)."""
    return physics.derived["xpos"][:, 1, :2].copy()


def centre_of_mass(physics: VelocityPhysics) -> Array:
    """The whole body's centre of mass in the integrator's last stage."""
    mass = physics.model.body_mass[:, None]
    return (np.sum(mass * physics.derived["xipos"], axis=1) / np.sum(mass))[:, :2]


def forward_speed(velocity: Array) -> Array:
    return velocity[:, 0]


def planar_speed(velocity: Array) -> Array:
    return np.sqrt(velocity[:, 0] ** 2 + velocity[:, 1] ** 2)


def uniform_noise(rng: np.random.Generator, scale: float, size: int) -> Array:
    return rng.uniform(-scale, scale, size)


def normal_noise(rng: np.random.Generator, scale: float, size: int) -> Array:
    return scale * rng.standard_normal(size)


def always_healthy(qpos: Array, qvel: Array) -> Array:
    return np.ones(len(qpos), bool)


def ant_healthy(qpos: Array, qvel: Array) -> Array:
    finite = np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1)
    return finite & (qpos[:, 2] >= 0.2) & (qpos[:, 2] <= 1.0)


def hopper_healthy(qpos: Array, qvel: Array) -> Array:
    bounded = (np.abs(qpos[:, 2:]) < 100).all(axis=1) & (np.abs(qvel) < 100).all(axis=1)
    return bounded & (qpos[:, 1] > 0.7) & (np.abs(qpos[:, 2]) < 0.2)


def humanoid_healthy(qpos: Array, qvel: Array) -> Array:
    return (qpos[:, 2] > 1.0) & (qpos[:, 2] < 2.0)


def walker_healthy(qpos: Array, qvel: Array) -> Array:
    return (qpos[:, 1] > 0.8) & (qpos[:, 1] < 2.0) & (np.abs(qpos[:, 2]) < 1.0)


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
    speed: Callable[[Array], Array] = forward_speed
    position: Callable[..., Array] = root_position
    velocity_noise: Callable[[np.random.Generator, float, int], Array] = uniform_noise
    healthy: Callable[[Array, Array], Array] = always_healthy
    position_field: str | None = None  # MjData field that `position` reads
    observed_fields: tuple[str, ...] = ()  # MjData fields at the end of the observation
    free_root: bool = False  # whether qpos[3:7] is a quaternion


ROBOTS: dict[str, VelocityRobot] = {
    "Ant": VelocityRobot(
        xml="ant.xml",
        substeps=5,
        speed_limit=2.6222,
        control_weight=0.5,
        reset_noise=0.1,
        healthy_reward=1.0,
        hidden=2,
        speed=planar_speed,
        position=torso_position,
        velocity_noise=normal_noise,
        healthy=ant_healthy,
        position_field="xpos",
        free_root=True,
    ),
    "HalfCheetah": VelocityRobot(
        xml="half_cheetah.xml",
        substeps=5,
        speed_limit=3.2096,
        control_weight=0.1,
        reset_noise=0.1,
        velocity_noise=normal_noise,
    ),
    "Hopper": VelocityRobot(
        xml="hopper.xml",
        substeps=4,
        speed_limit=0.7402,
        control_weight=1e-3,
        reset_noise=5e-3,
        healthy_reward=1.0,
        velocity_clip=10.0,
        healthy=hopper_healthy,
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
        speed=planar_speed,
        position=centre_of_mass,
        healthy=humanoid_healthy,
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
        healthy=walker_healthy,
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
