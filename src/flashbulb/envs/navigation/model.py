"""One MuJoCo model per task: floor, robot, and those objects that have physics.

Settings that make current MuJoCo behave like 2.3.3, which defined the tasks, are explained in
docs/parity.md (specification, section K).
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from flashbulb.envs.navigation.robots import Robot
from flashbulb.envs.navigation.tasks import BOX_HALF, BUTTON_RADIUS, Body, Level

_DISABLED = mujoco.mjtDisableBit.mjDSBL_NATIVECCD | mujoco.mjtDisableBit.mjDSBL_MULTICCD
_BOX_DENSITY = 0.001
# 2.3.3 scaled the rotational rows of a weld by the translational inverse weight; for our box that is 1/150.
_TORQUE_SCALE = math.sqrt(150.0)


def build_model(robot: Robot, level: Level) -> mujoco.MjModel:
    """Compile the scene; qpos is the robot, then seven numbers per free box in the level's order."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    option = spec.option
    option.timestep = robot.timestep
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
    robot.build(spec)
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
    """A button is a mocap sphere, so that members can differ in its place; a gremlin is welded to a mocap."""
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
