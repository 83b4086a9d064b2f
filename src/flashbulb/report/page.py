"""The report as one HTML file. It loads nothing: its policy forbids the network and all code but its own."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

from flashbulb.analysis.intrinsic_map import SIDE
from flashbulb.envs.navigation.render import HALF_VIEW
from flashbulb.errors import UsageError
from flashbulb.report.curves import cases, charts
from flashbulb.report.replay import replay
from flashbulb.report.run_groups import Subject, find, grouped, ordered, read
from flashbulb.report.tables import facts, tables
from flashbulb.report.top_view import SIZES

Tell = Callable[[str], None]

# In the order in which they build on each other.
SCRIPTS = (
    "dom.js",
    "axes.js",
    "chart.js",
    "shares.js",
    "arena.js",
    "track.js",
    "strip.js",
    "widgets.js",
    "player.js",
    "main.js",
)


def silence(sentence: str) -> None:
    """Tells nobody what is being done."""


def write_report(
    paths: list[Path], output: Path, episodes: int = 2, title: str | None = None, tell: Tell = silence
) -> int:
    """Write the page and return its size in bytes. Runs are only read, and nothing is written on failure."""
    data = gather(paths, episodes, title, tell)
    text = render(data).encode()
    try:
        output.write_bytes(text)
    except OSError as error:
        raise UsageError(f"output: {str(output)!r} cannot be written ({error.strerror}).") from None
    return len(text)


def gather(paths: list[Path], episodes: int, title: str | None, tell: Tell = silence) -> dict[str, Any]:
    """All that the page shows, as plain values."""
    tell("reading runs")
    found = find(paths)
    sources = [(source, ordered(read(source, with_name=len(found) > 1))) for source in found]
    subjects = [subject for _, own in sources for subject in own]
    tasks = grouped(subjects)
    default = " and ".join(source.name for source in found if source.name) or _default_title(tasks)
    return {
        "title": title or default,
        "facts": facts(sources),
        "labels": list(dict.fromkeys(subject.label for subject in subjects)),
        "tables": tables(sources),
        "sizes": SIZES | {"map": HALF_VIEW * SIDE / (SIDE - 1)},
        "tasks": [_task(task, group, episodes, tell) for task, group in tasks.items()],
    }


def _task(task: str, group: dict[str, list[Subject]], episodes: int, tell: Tell) -> dict[str, Any]:
    tell(f"drawing curves of {task}")
    drawn = {"charts": charts(group), "cases": cases(group)}
    replays = []
    for label, runs in group.items() if episodes else ():
        tell(f"recording {label} on {task}")
        replays.append(replay(label, runs, episodes))
    limits = sorted({run.config.cost_limit for runs in group.values() for run in runs})
    return {"name": task, "limits": limits, **drawn, "replays": replays}


def _default_title(tasks: dict[str, dict[str, list[Subject]]]) -> str:
    labels = list(dict.fromkeys(label for group in tasks.values() for label in group))
    where = next(iter(tasks)) if len(tasks) == 1 else f"{len(tasks)} tasks"
    what = ", ".join(labels) if len(labels) <= 4 else f"{len(labels)} agents"
    return f"{what} on {where}"


def render(data: dict[str, Any]) -> str:
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "".join(_asset(name) for name in SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_asset("page.html")).substitute(
        policy=html.escape(policy), title=html.escape(data["title"]), style=style, script=script, data=embed(data)
    )


def embed(data: Any) -> str:
    """JSON that no HTML parser takes for markup, whatever is in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (importlib.resources.files("flashbulb.report") / "assets" / name).read_text(encoding="utf-8")
