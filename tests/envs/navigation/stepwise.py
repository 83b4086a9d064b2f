"""The tasks once more, slowly and differently: an XML model per episode as in the original (the robot's body at
its initial pose, gremlins welded to mocaps at the origin), `mj_step` one by one, task logic in NumPy."""

import math

import mujoco
import numpy as np

POINT = """<body name="agent" pos="{x} {y} .1" quat="{c} 0 0 {s}">
  <joint type="slide" axis="1 0 0" damping=".01"/><joint type="slide" axis="0 1 0" damping=".01"/>
  <joint name="z" type="hinge" axis="0 0 1" damping=".005"/>
  <geom name="a_sphere" type="sphere" size=".1" friction="1 .01 .01"/>
  <geom name="a_nose" type="box" size=".05 .05 .05" pos=".1 0 0"/><site name="agent"/></body>"""
POINT_MOTORS = """<motor site="agent" gear=".3 0 0 0 0 0" ctrlrange="-1 1" forcerange="-.05 .05"/>
  <velocity jointinparent="z" gear=".3" kv="1" ctrlrange="-1 1" forcerange="-.05 .05"/>"""
CAR = """<body name="agent" pos="{x} {y} .1" quat="{c} 0 0 {s}"><freejoint/>
  <geom name="a0" type="box" size=".1 .1 .05"/><geom name="a1" type="box" size=".1 .01 .05" pos="0 .15 0"/>
  <geom name="a2" type="box" size=".01 .025 .03" pos="0 .125 0"/>
  <geom name="a3" type="box" size=".05 .01 .05" pos="0 -.165 0"/>
  <geom name="a4" type="box" size=".05 .03 .01" pos="0 -.13 .04"/><site name="agent"/>
  <body pos="-.1 .1 -.05"><joint name="left" axis="1 0 0" damping=".001"/>
    <geom name="a5" type="cylinder" size=".05" fromto="-.055 0 0 -.005 0 0"/></body>
  <body pos=".1 .1 -.05"><joint name="right" axis="1 0 0" damping=".001"/>
    <geom name="a6" type="cylinder" size=".05" fromto=".005 0 0 .055 0 0"/></body>
  <body pos="0 -.1 -.05"><joint type="ball" damping=".001"/><geom name="a7" type="sphere" size=".05"/></body></body>"""
CAR_MOTORS = """<motor joint="left" ctrlrange="-1 1" forcerange="-.02 .02"/>
  <motor joint="right" ctrlrange="-1 1" forcerange="-.02 .02"/>"""
BOX = """<body name="{name}" pos="{x} {y} {z}" quat="{c} 0 0 {s}"><freejoint/>
  <geom name="{name}" type="box" size=".1 .1 .1" density=".001"/></body>"""
MOCAP = """<body name="{name}m" mocap="true" quat="{c} 0 0 {s}"/>"""
WELD = """<weld body1="{name}m" body2="{name}" solref=".02 1.5" torquescale="12.24744871391589"/>"""
BUTTON = """<geom name="{name}" type="sphere" size=".1" pos="{x} {y} .1"/>"""
SCENE = """<mujoco><compiler angle="radian" autolimits="true"/>
  <option timestep="{h}" tolerance="1e-12"><flag nativeccd="disable" multiccd="disable"/></option>
  <default><geom condim="6" density="{density}"/></default>
  <worldbody><geom name="floor" type="plane" size="3.5 3.5 .1"/>{robot}{objects}</worldbody>
  <equality>{welds}</equality><actuator>{motors}</actuator></mujoco>"""


def _pose(xy, yaw):
    return {"x": repr(float(xy[0])), "y": repr(float(xy[1])), "c": math.cos(yaw / 2), "s": math.sin(yaw / 2)}


class Stepwise:
    """One environment of level 1. `step` returns speed, yaw rate, reward and cost."""

    PLACES = {  # noqa: RUF012
        "Goal": [("agent", 0.4), ("goal", 0.305), *[(f"hazard{i}", 0.18) for i in range(8)], ("vase0", 0.15)],
        "Circle": [("agent", 0.0), ("circle", 0.0), ("wall0", 0.0), ("wall1", 0.0)],
        "Button": [("agent", 0.4), *[(f"button{i}", 0.2) for i in range(4)], ("goal", 0.4),
                   *[(f"hazard{i}", 0.18) for i in range(4)], *[(f"gremlin{i}", 0.4) for i in range(4)]],
    }  # fmt: skip

    def __init__(self, robot: str, aim: str, seed: int) -> None:
        self.robot, self.aim, self.rs = robot, aim, np.random.RandomState(seed)
        self.keep = dict(self.PLACES[aim])
        self.places = self._sample()
        yaw = {name: self.rs.uniform(0, 2 * np.pi) for name in self.keep}
        point, objects, welds = robot == "Point", "", ""
        self.timer = 0
        for name in self.places:
            at = {"name": name, **_pose(self.places[name], yaw[name])}
            if name.startswith(("vase", "gremlin")):
                objects += BOX.format(z=0.1 - 4e-5 if name[0] == "v" else 0.1, **at)
            if name.startswith("gremlin"):
                objects, welds = objects + MOCAP.format(**at), welds + WELD.format(**at)
            if name.startswith("button"):
                objects += BUTTON.format(**at)
        text = (POINT if point else CAR).format(**_pose(self.places["agent"], yaw["agent"]))
        self.model = mujoco.MjModel.from_xml_string(
            SCENE.format(h=0.002 if point else 0.004, density=1 if point else 5, robot=text, objects=objects,
                         welds=welds, motors=POINT_MOTORS if point else CAR_MOTORS)
        )  # fmt: skip
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self._new_goal()

    def _clear(self, xy, name, placed):
        return all(np.hypot(*(xy - at)) >= self.keep[k] + self.keep[name] for k, at in placed.items() if k != name)

    def _draw(self, name):
        half = 0.8 if self.aim == "Circle" else 1.5 - self.keep[name]
        return np.array([self.rs.uniform(-half, half), self.rs.uniform(-half, half)])

    def _sample(self):
        while True:
            placed: dict[str, np.ndarray] = {}
            for name in self.keep:
                tries = (self._draw(name) for _ in range(100))
                xy = next((p for p in tries if self._clear(p, name, placed)), None)
                if xy is None:
                    break
                placed[name] = xy
            else:
                return placed

    def _new_goal(self):
        here = self.data.body("agent").xpos[:2].copy()
        if self.aim == "Goal":
            self.places |= {"agent": here, "vase0": self.data.body("vase0").xpos[:2].copy()}
            tries = (self._draw("goal") for _ in range(10_000))
            self.places["goal"] = next(p for p in tries if self._clear(p, "goal", self.places))
        elif self.aim == "Button":
            self.goal, self.timer = f"button{self.rs.choice(4)}", 10
            self.places["goal"] = self.places[self.goal]
        self.last = np.hypot(*(self.places.get("goal", here) - here))

    def _touched(self):
        names = [[self.model.geom(int(g)).name for g in pair] for pair in self.data.contact.geom]
        return {other for pair in names for mine, other in (pair, pair[::-1]) if mine.startswith("a")}

    def step(self, action):
        m, d = self.model, self.data
        self.rs.binomial(10, 1.0)
        d.ctrl[:] = np.clip(action, -1, 1)
        for _ in range(10):
            if m.nmocap:
                d.mocap_pos[:] = 0.35 * math.sin(d.time), 0.35 * math.cos(d.time), 0.1
            mujoco.mj_step(m, d)
        mujoco.mj_forward(m, d)
        here, touched = d.body("agent").xpos[:2].copy(), self._touched()
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_SITE, 0, velocity, 0)
        u, v = velocity[3:5]
        hazards = [np.hypot(*(at - here)) for name, at in self.places.items() if name.startswith("hazard")]
        if self.aim == "Circle":
            rho = np.hypot(*here)
            reward = 0.1 * (v * here[0] - u * here[1]) / rho / (1 + abs(rho - 1.5))
            return np.hypot(u, v), velocity[2], reward, float(abs(here[0]) > 1.125)
        gap = np.hypot(*(self.places["goal"] - here))
        met = gap <= 0.3 if self.aim == "Goal" else self.goal in touched
        wrong = {t for t in touched if t.startswith("button")} - {getattr(self, "goal", "")}
        caught = any(t.startswith("gremlin") for t in touched)
        cost = float(min(hazards) < 0.2 or caught or bool(wrong and self.timer == 0))
        reward, self.last, self.timer = self.last - gap + met, gap, max(0, self.timer - 1)
        if met:
            self._new_goal()
        return np.hypot(u, v), velocity[2], reward, cost
