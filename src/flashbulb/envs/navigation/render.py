"""Top-down pictures and animations of navigation tasks, drawn by matplotlib without OpenGL.

scenes = [take_scene(env)]
for action in actions:
    cost = env.step(action)[2][0]
    scenes.append(take_scene(env, cost=cost))
save_picture("run.png", scenes)
save_animation("run.gif", scenes)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from flashbulb.envs.navigation.env import Navigation
from flashbulb.envs.navigation.layout import read_yaw
from flashbulb.envs.navigation.tasks import (
    BOX_HALF,
    BUTTON_RADIUS,
    CIRCLE_RADIUS,
    GOAL_RADIUS,
    GREMLIN_TRAVEL,
    HAZARD_RADIUS,
    Aim,
    Point,
)
from flashbulb.errors import UsageError

INK, PAPER, FLOOR = "#2b2d42", "#ffffff", "#f6f4ef"
GOAL, HAZARD, VASE, BUTTON, GREMLIN = "#2a9d5c", "#4a6fe3", "#17a2b8", "#f08a24", "#8e44ad"
ROBOT, COST, MEMORY = "#d7263d", "#c1121f", "#e0a100"
_TRAIL = LinearSegmentedColormap.from_list("trail", ["#c9ccd6", INK])
_HEAT = LinearSegmentedColormap.from_list("heat", [FLOOR, "#ffd9a0", "#f4845f", "#9d0208"])
Entry = tuple[bool, str, str, str]  # of the legend: whether it is shown, name, marker, colour
HALF_VIEW = 2.1  # metres from the centre to the edge of a picture, widened to hold the trail
_NOTHING = np.zeros((0, 3))


@dataclass(frozen=True)
class Scene:
    """The places of all objects of one environment at one time, as rows of x, y, yaw; to be drawn now or later."""

    title: str
    robot: str
    agent: np.ndarray  # (3,)
    goal: np.ndarray | None  # (2,)
    hazards: np.ndarray
    vases: np.ndarray
    buttons: np.ndarray
    gremlins: np.ndarray
    paths: np.ndarray  # centres of the gremlins' paths
    boundary: Point
    has_circle: bool
    blind: bool  # the buttons are inactive
    cost: float = 0.0  # of the step that led here


def take_scene(env: Navigation, index: int = 0, cost: float = 0.0) -> Scene:
    """Copy what a picture of environment `index` shows; `cost` is that of its last step."""
    layout = {name: rows[0] for name, rows in env.layout(np.array([index])).items()}
    rules, row = env.rules, env.state.physics[index]
    columns = [c for k, c, _ in rules.free if rules.gremlins[0] <= k < rules.gremlins[1]]
    bodies = np.array([row[c : c + 7] for c in columns]).reshape(-1, 7)
    goal = env.state.objects[index, rules.goal, :2].copy() if rules.goal >= 0 else None
    return Scene(
        title=env.env_id,
        robot=env.robot.name,
        agent=layout["agent"],
        goal=goal,
        hazards=layout.get("hazards", _NOTHING),
        vases=layout.get("vases", _NOTHING),
        buttons=layout.get("buttons", _NOTHING),
        gremlins=np.c_[bodies[:, :2], read_yaw(bodies[:, 3:])],
        paths=layout.get("gremlins", _NOTHING),
        boundary=env.level.boundary,
        has_circle=env.level.aim is Aim.CIRCLE,
        blind=bool(env.state.timer[index]),
        cost=cost,
    )


def picture(
    scenes: Sequence[Scene], memory: np.ndarray | None = None, heat: np.ndarray | None = None, size: float = 6.0
) -> Figure:
    """The last scene, with the path there as a trail and a cross at every step with a cost.

    `memory` (m, 2) marks remembered states by their x, y. `heat` (rows, columns) is a map over
    [-HALF_VIEW, HALF_VIEW]², first row at the bottom, for example the intrinsic cost.
    """
    if not scenes:
        raise UsageError("scenes: an empty sequence cannot be drawn; it must hold at least one scene.")
    figure = Figure(figsize=(size, size * 1.09), facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    half = max(HALF_VIEW, *(np.abs(s.agent[:2]).max() + 0.3 for s in scenes))
    _draw_stage(axes, scenes[-1], half)
    if heat is not None:
        _draw_heat(figure, axes, heat, half)
    if memory is not None:
        axes.plot(*np.asarray(memory).T[:2], "o", ms=4.2, mfc=MEMORY, mec=PAPER, mew=0.4, zorder=4)
    _draw_objects(axes, scenes[-1])
    _draw_trail(axes, scenes)
    _draw_robot(axes, scenes[-1])
    _draw_legend(figure, scenes, memory is not None)
    return figure


def save_picture(
    path: str | PathLike[str],
    scenes: Sequence[Scene],
    memory: np.ndarray | None = None,
    heat: np.ndarray | None = None,
    dpi: int = 130,
) -> None:
    """Write `picture(...)` as PNG, or in the format of the suffix."""
    picture(scenes, memory, heat).savefig(path, dpi=dpi, facecolor=PAPER)


def save_animation(path: str | PathLike[str], scenes: Sequence[Scene], fps: int = 20, dpi: int = 80) -> None:
    """Write the scenes as a GIF with a growing trail."""
    stage = picture(scenes, size=5.0)  # all frames have the widest view
    axes = stage.axes[0]
    half = axes.get_xlim()[1]
    stage.draw_without_rendering()
    stage.set_layout_engine("none")  # keep the arrangement instead of solving it for every frame
    writer = PillowWriter(fps=fps)
    with writer.saving(stage, str(path), dpi):
        for k in range(len(scenes)):
            axes.clear()
            _draw_stage(axes, scenes[k], half)
            _draw_objects(axes, scenes[k])
            _draw_trail(axes, scenes[: k + 1])
            _draw_robot(axes, scenes[k])
            writer.grab_frame()


def _draw_stage(axes: Axes, scene: Scene, half: float) -> None:
    axes.set(xlim=(-half, half), ylim=(-half, half), aspect="equal", facecolor=FLOOR)
    axes.set_title(scene.title, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.tick_params(length=0, labelsize=7, colors="#8d90a1")
    axes.grid(color="#e6e2d8", lw=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    reach = 100.0  # beyond any view
    for axis, limit in enumerate(scene.boundary):
        if np.isfinite(limit):
            span, line = (axes.axvspan, axes.axvline) if axis == 0 else (axes.axhspan, axes.axhline)
            for side in (-1, 1):
                span(side * limit, side * reach, color=COST, alpha=0.07, lw=0, zorder=0.5)
                line(side * limit, color=COST, lw=1.6, ls=(0, (4, 2)), zorder=1)
    axes.set(xlim=(-half, half), ylim=(-half, half))


def _draw_heat(figure: Figure, axes: Axes, heat: np.ndarray, half: float) -> None:
    square = (-HALF_VIEW, HALF_VIEW, -HALF_VIEW, HALF_VIEW)
    image = axes.imshow(heat, extent=square, origin="lower", cmap=_HEAT, zorder=0.6, interpolation="bilinear")
    axes.set(xlim=(-half, half), ylim=(-half, half))
    quiet_bar(figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.02))


def quiet_bar(bar: Colorbar) -> None:
    """Style a colour bar: no outline, no ticks, small labels."""
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7, colors="#8d90a1")


def draw_map(axes: Axes, scene: Scene, heat: np.ndarray, memory: np.ndarray, scale: Normalize) -> AxesImage:
    """A panel of a larger figure: `picture` without the robot, its heat on a scale that several may share."""
    _draw_stage(axes, scene, HALF_VIEW)
    edge = HALF_VIEW * len(heat) / (len(heat) - 1)  # the outermost values lie at HALF_VIEW, half a cell inside
    square = (-edge, edge, -edge, edge)
    style: dict[str, Any] = {"cmap": _HEAT, "zorder": 0.6, "interpolation": "bilinear", "norm": scale}
    image = axes.imshow(heat, extent=square, origin="lower", **style)
    axes.plot(*memory.T, "o", ms=2.6, mfc=MEMORY, mec=INK, mew=0.3, alpha=0.6, zorder=4)
    _draw_objects(axes, scene)
    axes.set(xticks=[], yticks=[], xlim=(-HALF_VIEW, HALF_VIEW), ylim=(-HALF_VIEW, HALF_VIEW))
    return image


def draw_key(figure: Figure, scene: Scene, memory: str) -> None:
    """The legend of such a figure; `memory` is the label of the marks."""
    _legend(figure, [*_things(scene), (True, memory, ".", MEMORY)])


def _draw_objects(axes: Axes, scene: Scene) -> None:
    if scene.has_circle:
        axes.add_patch(Circle((0, 0), CIRCLE_RADIUS, fc=GOAL, alpha=0.08, lw=0, zorder=1))
        axes.add_patch(Circle((0, 0), CIRCLE_RADIUS, fill=False, ec=GOAL, lw=2, zorder=1))
    for x, y, _ in scene.hazards:
        axes.add_patch(Circle((x, y), HAZARD_RADIUS, fc=HAZARD, alpha=0.30, lw=0, zorder=2))
        axes.add_patch(Circle((x, y), HAZARD_RADIUS, fill=False, ec=HAZARD, lw=1.2, zorder=2))
    for x, y, _ in scene.paths:
        axes.add_patch(Circle((x, y), GREMLIN_TRAVEL, fill=False, ec=GREMLIN, lw=0.8, ls=":", alpha=0.6, zorder=2))
    for x, y, _ in scene.buttons:
        axes.add_patch(
            Circle((x, y), BUTTON_RADIUS, fc=BUTTON, alpha=0.35 if scene.blind else 1, ec=INK, lw=0.8, zorder=3)
        )
    if scene.goal is not None:
        radius = 1.8 * BUTTON_RADIUS if len(scene.buttons) else GOAL_RADIUS
        axes.add_patch(Circle(tuple(scene.goal), radius, fc=GOAL, alpha=0.22, lw=0, zorder=2.5))
        axes.add_patch(Circle(tuple(scene.goal), radius, fill=False, ec=GOAL, lw=2, zorder=2.5))
    for boxes, colour in ((scene.vases, VASE), (scene.gremlins, GREMLIN)):
        for x, y, yaw in boxes:
            _box(axes, (x, y, yaw), (0, 0), (BOX_HALF, BOX_HALF), fc=colour, ec=PAPER, lw=0.8, zorder=5)


def _draw_trail(axes: Axes, scenes: Sequence[Scene]) -> None:
    path = np.array([s.agent[:2] for s in scenes])
    if len(path) > 1:
        pieces = np.stack([path[:-1], path[1:]], axis=1)
        # A jump is the start of a new episode.
        pieces = pieces[np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=-1) < 0.3]
        trail = LineCollection(list(pieces), cmap=_TRAIL, lw=1.8, capstyle="round", zorder=6)
        trail.set_array(np.linspace(0, 1, len(pieces)))
        axes.add_collection(trail)
    costly = np.array([s.cost > 0 for s in scenes])
    axes.plot(*path[costly].T, "x", color=COST, ms=5, mew=1.4, zorder=7)


def _draw_robot(axes: Axes, scene: Scene) -> None:
    pose = tuple(scene.agent)
    if scene.robot == "Point":
        axes.add_patch(Circle(pose[:2], 0.1, fc=ROBOT, ec=PAPER, lw=0.9, zorder=9))
        _box(axes, pose, (0.1, 0), (0.05, 0.05), fc=ROBOT, ec=PAPER, lw=0.9, zorder=8)
        return
    for centre, half in (((-0.13, 0.1), (0.025, 0.05)), ((0.13, 0.1), (0.025, 0.05))):
        _box(axes, pose, centre, half, fc=INK, lw=0, zorder=8)
    for centre, half in (
        ((0, 0), (0.1, 0.1)),
        ((0, 0.15), (0.1, 0.01)),
        ((0, 0.125), (0.01, 0.025)),
        ((0, -0.165), (0.05, 0.01)),
        ((0, -0.13), (0.05, 0.03)),
    ):
        _box(axes, pose, centre, half, fc=ROBOT, ec=ROBOT, lw=0.5, zorder=9)
    # An arrow head towards its front, the local -y.
    turn = np.array([[np.cos(pose[2]), -np.sin(pose[2])], [np.sin(pose[2]), np.cos(pose[2])]])
    head = np.array([[-0.05, 0.02], [0.05, 0.02], [0, -0.07]]) @ turn.T + pose[:2]
    axes.fill(*head.T, color=PAPER, zorder=10)


def _box(
    axes: Axes, pose: tuple[float, ...], centre: tuple[float, float], half: tuple[float, float], **style: object
) -> None:
    """A rectangle with its centre given in the frame of a pose."""
    x, y, yaw = pose
    c, s = np.cos(yaw), np.sin(yaw)
    dx, dy = centre[0] - half[0], centre[1] - half[1]
    corner = (x + c * dx - s * dy, y + s * dx + c * dy)
    axes.add_patch(Rectangle(corner, 2 * half[0], 2 * half[1], angle=float(np.degrees(yaw)), **style))  # type: ignore[arg-type]


def _draw_legend(figure: Figure, scenes: Sequence[Scene], with_memory: bool) -> None:
    entries = [
        (True, "robot", "o", ROBOT),
        *_things(scenes[-1]),
        (with_memory, "memory", ".", MEMORY),
        (any(s.cost > 0 for s in scenes), "cost", "x", COST),
    ]
    _legend(figure, entries)


def _things(scene: Scene) -> list[Entry]:
    return [
        (scene.goal is not None or scene.has_circle, "circle" if scene.has_circle else "goal", "o", GOAL),
        (len(scene.hazards) > 0, "hazard", "o", HAZARD),
        (len(scene.vases) > 0, "vase", "s", VASE),
        (len(scene.buttons) > 0, "button", "o", BUTTON),
        (len(scene.gremlins) > 0, "gremlin", "s", GREMLIN),
    ]


def _legend(figure: Figure, entries: list[Entry]) -> None:
    handles = [
        Line2D([], [], ls="", marker=marker, color=colour, ms=7, label=name)
        for shown, name, marker, colour in entries
        if shown
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8,
                  labelcolor=INK, handletextpad=0.2, columnspacing=1.2)  # fmt: skip
