"""One MuJoCo model per task: floor, robot, and the objects that have physics.

The settings that make current MuJoCo behave like 2.3.3, which defined the tasks, are explained in docs/parity.md.
Robots are built at the origin with axes along the world's, so that one model serves all environments of a batch: to
place a robot is to write a few numbers into its state.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.navigation.tasks import BOX_HALF, BUTTON_RADIUS, Body, Level

_DISABLED = mujoco.mjtDisableBit.mjDSBL_NATIVECCD | mujoco.mjtDisableBit.mjDSBL_MULTICCD
_BOX_DENSITY = 0.001
ROBOT_HEIGHT = 0.1  # of both robots' origin above the floor
_GEOM, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
# 2.3.3 scaled the rotational rows of a weld by the translational inverse weight; for our box that is 1/150.
_TORQUE_SCALE = math.sqrt(150.0)


def build_model(robot: str, level: Level) -> mujoco.MjModel:
    """Compile the model; qpos is the robot, then seven numbers per free box in the level's order."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    option = spec.option
    option.timestep = TIMESTEPS[robot]
    option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    option.iterations, option.tolerance, option.ccd_iterations = 100, 1e-12, 50
    option.magnetic = [0, -0.5, 0]
    option.disableflags |= int(_DISABLED)
    spec.default.geom.condim = 6
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[3.5, 3.5, 0.1], rgba=[0.93, 0.92, 0.9, 1]
    )
    _BUILDERS[robot](spec)
    for group in level.groups:
        for k in range(group.count):
            if group.body in (Body.VASE, Body.GREMLIN):
                _add_box(spec, f"{group.name[:-1]}{k}", group.body)
    for group in level.groups:
        for k in range(group.count):
            if group.body in (Body.BUTTON, Body.GREMLIN):
                _add_mocap(spec, f"{group.name[:-1]}{k}", group.body)
    for group in level.groups:
        for k in range(group.count):
            if group.body is Body.BUTTON or (group.body is not Body.NONE and group.constrained):
                _add_touch(spec, f"{group.name[:-1]}{k}")
    return spec.compile()


def _add_box(spec: mujoco.MjSpec, name: str, kind: Body) -> None:
    body = spec.worldbody.add_body(name=name, pos=[0, 0, BOX_HALF])
    body.add_freejoint(name=name)
    colour = [0.1, 0.75, 0.85, 1] if kind is Body.VASE else [0.55, 0.2, 0.7, 1]
    body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_BOX, size=[BOX_HALF] * 3, density=_BOX_DENSITY, rgba=colour)


def _add_mocap(spec: mujoco.MjSpec, name: str, kind: Body) -> None:
    """A button is a mocap sphere, so that environments can differ in its place; a gremlin is welded to a mocap."""
    if kind is Body.BUTTON:
        body = spec.worldbody.add_body(name=name, mocap=True)
        body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[BUTTON_RADIUS, 0, 0], rgba=[1, 0.55, 0.1, 1])
        return
    spec.worldbody.add_body(name=f"{name}_path", mocap=True)
    weld = spec.add_equality(name=name, type=mujoco.mjtEq.mjEQ_WELD, name1=f"{name}_path", name2=name)
    weld.objtype = mujoco.mjtObj.mjOBJ_BODY
    weld.solref = [0.02, 1.5]
    weld.data = np.array([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, _TORQUE_SCALE])


def _add_touch(spec: mujoco.MjSpec, name: str) -> None:
    """How many contacts any part of the robot has with this object."""
    touch = spec.add_sensor(
        name=f"touch_{name}",
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_XBODY,
        objname="agent",
        reftype=mujoco.mjtObj.mjOBJ_GEOM,
        refname=name,
    )
    touch.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND), 0, 1]


def _actuator(spec: mujoco.MjSpec, name: str, limit: float) -> mujoco.MjsActuator:
    actuator = spec.add_actuator(name=name, ctrlrange=[-1, 1], forcerange=[-limit, limit])
    actuator.ctrllimited = actuator.forcelimited = True
    return actuator


def _add_inertial_sensors(spec: mujoco.MjSpec) -> None:
    for kind in ("ACCELEROMETER", "VELOCIMETER", "GYRO", "MAGNETOMETER"):
        spec.add_sensor(
            name=kind.lower(),
            type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname="agent",
        )


def _build_point(spec: mujoco.MjSpec) -> None:
    """A sphere with a nose that slides and turns; thrust along the nose, a servo on the yaw rate."""
    spec.default.geom.density = 1.0
    body = spec.worldbody.add_body(name="agent", pos=[0, 0, ROBOT_HEIGHT])
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
    _add_inertial_sensors(spec)


def _build_car(spec: mujoco.MjSpec) -> None:
    """A box on two driven wheels and a ball; its front is the local -y."""
    spec.default.geom.density = 5.0
    body = spec.worldbody.add_body(name="agent", pos=[0, 0, ROBOT_HEIGHT])
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
    _add_inertial_sensors(spec)
    for kind in ("BALLANGVEL", "BALLQUAT"):
        spec.add_sensor(
            name=f"{kind.lower()}_rear",
            type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname="rear",
        )


TIMESTEPS = {"Point": 0.002, "Car": 0.004}
_BUILDERS = {"Point": _build_point, "Car": _build_car}
