"""The robots: how they are built (specification, section B), placed, and what they feel of themselves.

Both are built at the origin with axes along the world's, so that one model serves every member of a batch:
a placement is a few numbers in the physics row instead of a new model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from flashbulb.envs.navigation.lidar import write_lidars
from flashbulb.envs.navigation.random_streams import copy
from flashbulb.envs.navigation.task_state import Batch, Rules
from flashbulb.jit import jit, jit_helper

_GEOM, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
HEIGHT = 0.1  # of both robots' origin above the floor


@dataclass(frozen=True)
class Robot:
    """`see` fills the members' poses and observations; `place` writes a pose at rest."""

    build: Callable[[mujoco.MjSpec], None]
    place: Callable[..., None]
    see: Callable[..., None]
    timestep: float
    qpos: int  # how much of qpos is the robot
    senses: int  # sensor values it feels
    feels: int  # observation entries made of them


def _actuator(spec: mujoco.MjSpec, name: str, limit: float) -> mujoco.MjsActuator:
    actuator = spec.add_actuator(name=name, ctrlrange=[-1, 1], forcerange=[-limit, limit])
    actuator.ctrllimited = actuator.forcelimited = True
    return actuator


def _sense(spec: mujoco.MjSpec) -> None:
    for kind in ("ACCELEROMETER", "VELOCIMETER", "GYRO", "MAGNETOMETER"):
        spec.add_sensor(
            name=kind.lower(),
            type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname="agent",
        )


def build_point(spec: mujoco.MjSpec) -> None:
    """A sphere with a nose that slides and turns; thrust along the nose, a servo on the yaw rate."""
    spec.default.geom.density = 1.0
    body = spec.worldbody.add_body(name="agent", pos=[0, 0, HEIGHT])
    for name, kind, axis, damping in (
        ("x", _JOINT.mjJNT_SLIDE, [1, 0, 0], 0.01),
        ("y", _JOINT.mjJNT_SLIDE, [0, 1, 0], 0.01),
        ("z", _JOINT.mjJNT_HINGE, [0, 0, 1], 0.005),
    ):
        joint = body.add_joint(name=name, type=kind, axis=axis)
        joint.damping[0] = damping
    body.add_geom(name="agent", type=_GEOM.mjGEOM_SPHERE, size=[0.1, 0, 0], friction=[1, 0.01, 0.01])
    body.add_geom(name="pointarrow", type=_GEOM.mjGEOM_BOX, size=[0.05] * 3, pos=[0.1, 0, 0])
    body.add_site(name="agent")
    thrust = _actuator(spec, "x", 0.05)
    thrust.trntype, thrust.target = mujoco.mjtTrn.mjTRN_SITE, "agent"
    thrust.gear = [0.3, 0, 0, 0, 0, 0]
    servo = _actuator(spec, "z", 0.05)
    servo.trntype, servo.target = mujoco.mjtTrn.mjTRN_JOINTINPARENT, "z"
    servo.gear = [0.3, 0, 0, 0, 0, 0]
    servo.set_to_velocity(kv=1.0)
    _sense(spec)


def build_car(spec: mujoco.MjSpec) -> None:
    """A box on two driven wheels and a ball; its front is the local -y."""
    spec.default.geom.density = 5.0
    body = spec.worldbody.add_body(name="agent", pos=[0, 0, HEIGHT])
    body.add_freejoint(name="agent")
    for name, size, pos in (
        ("agent", [0.1, 0.1, 0.05], [0, 0, 0]),
        ("back_bumper", [0.1, 0.01, 0.05], [0, 0.15, 0]),
        ("back_connector", [0.01, 0.025, 0.03], [0, 0.125, 0]),
        ("front_bumper", [0.05, 0.01, 0.05], [0, -0.165, 0]),
        ("front_connector", [0.05, 0.03, 0.01], [0, -0.13, 0.04]),
    ):
        body.add_geom(name=name, type=_GEOM.mjGEOM_BOX, size=size, pos=pos)
    body.add_site(name="agent")
    for name, side in (("left", -1), ("right", 1)):
        wheel = body.add_body(name=name, pos=[0.1 * side, 0.1, -0.05])
        joint = wheel.add_joint(name=name, type=_JOINT.mjJNT_HINGE, axis=[1, 0, 0])
        joint.damping[0] = 0.001
        ends = sorted([0.005 * side, 0.055 * side])
        wheel.add_geom(
            name=name,
            type=_GEOM.mjGEOM_CYLINDER,
            size=[0.05, 0, 0],
            fromto=[ends[0], 0, 0, ends[1], 0, 0],
        )
        motor = _actuator(spec, name, 0.02)
        motor.trntype, motor.target = mujoco.mjtTrn.mjTRN_JOINT, name
        motor.set_to_motor()
    rear = body.add_body(name="rear", pos=[0, -0.1, -0.05])
    ball = rear.add_joint(name="rear", type=_JOINT.mjJNT_BALL)
    ball.damping[0] = 0.001
    rear.add_geom(name="rear", type=_GEOM.mjGEOM_SPHERE, size=[0.05, 0, 0])
    _sense(spec)
    for kind in ("BALLANGVEL", "BALLQUAT"):
        spec.add_sensor(
            name=f"{kind.lower()}_rear",
            type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname="rear",
        )


@jit
def place_point(batch: Batch, members: np.ndarray) -> None:
    for i in members:
        copy(batch.objects[i, 0], batch.physics[i, 1:], 3)


@jit
def place_car(batch: Batch, members: np.ndarray) -> None:
    for i in members:
        row, agent = batch.physics[i], batch.objects[i, 0]
        copy(agent, row[1:], 2)
        row[3] = HEIGHT
        row[4] = math.cos(agent[2] / 2)
        row[7] = math.sin(agent[2] / 2)
        row[10] = 1.0  # the ball's quaternion


@jit
def see_point(
    batch: Batch, rules: Rules, members: np.ndarray, pos: np.ndarray, mat: np.ndarray, obs: np.ndarray
) -> None:
    for i in members:
        row = batch.physics[i]
        c, s = math.cos(row[3]), math.sin(row[3])
        pos[i, 0], pos[i, 1], pos[i, 2] = row[1], row[2], HEIGHT
        mat[i] = 0.0
        mat[i, 0, 0], mat[i, 0, 1], mat[i, 1, 0], mat[i, 1, 1], mat[i, 2, 2] = c, -s, s, c, 1.0
        copy(batch.sensors[i], obs[i], 12)
    write_lidars(batch, rules, members, pos, mat, 12, obs)


@jit_helper
def rotation(quaternion: np.ndarray, mat: np.ndarray) -> None:
    """The matrix of a quaternion, normalised first."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / length, x / length, y / length, z / length
    mat[0, 0], mat[0, 1], mat[0, 2] = w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)
    mat[1, 0], mat[1, 1], mat[1, 2] = 2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)
    mat[2, 0], mat[2, 1], mat[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z


@jit
def see_car(batch: Batch, rules: Rules, members: np.ndarray, pos: np.ndarray, mat: np.ndarray, obs: np.ndarray) -> None:
    ball = np.empty((3, 3))
    for i in members:
        copy(batch.physics[i, 1:], pos[i], 3)
        rotation(batch.physics[i, 4:8], mat[i])
        copy(batch.sensors[i], obs[i], 15)
        rotation(batch.sensors[i, 15:19], ball)
        for k in range(9):
            obs[i, 15 + k] = ball[k // 3, k % 3]
    write_lidars(batch, rules, members, pos, mat, 24, obs)


ROBOTS: dict[str, Robot] = {
    "Point": Robot(build_point, place_point, see_point, timestep=0.002, qpos=3, senses=12, feels=12),
    "Car": Robot(build_car, place_car, see_car, timestep=0.004, qpos=13, senses=19, feels=24),
}
