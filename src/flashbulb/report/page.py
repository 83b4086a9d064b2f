"""The report as one HTML file. It loads nothing: its content security policy forbids the network and other scripts."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

from flashbulb.analysis.intrinsic_map import HEAT_HIGH, HEAT_LOW, HEAT_POWER, SIDE
from flashbulb.envs.navigation.render import HALF_VIEW
from flashbulb.errors import UsageError
from flashbulb.plots.learning_curves import choose_colours
from flashbulb.report.curves import cpo_case_charts, learning_charts
from flashbulb.report.encoding import embedded_json
from flashbulb.report.replay import replay
from flashbulb.report.run_groups import (
    ReportRun,
    RunGroups,
    drop_damaged,
    drop_repeated,
    find_sources,
    group_runs,
    read_source,
    sort_runs,
)
from flashbulb.report.tables import result_tables, run_facts
from flashbulb.report.views import OBJECT_SIZES
from flashbulb.shown_text import note_all

Progress = Callable[[str], None]  # is given a line that says what is being done

# Each script uses those before it.
SCRIPTS = (
    "dom.js",
    "axes.js",
    "charts.js",
    "arena.js",
    "runner.js",
    "player.js",
    "main.js",
)


def _no_progress(line: str) -> None:
    """Print nothing."""


def write_report(
    paths: list[Path], output: Path, episodes: int = 2, title: str | None = None, progress: Progress = _no_progress
) -> int:
    """Write the page and return its size in bytes; if it fails, nothing is written."""
    data = report_data(paths, episodes, title, progress)
    note_all(data["left_out"])
    text = render_page(data).encode()
    try:
        output.write_bytes(text)
    except OSError as error:
        raise UsageError(f"output: {str(output)!r} cannot be written ({error.strerror}).") from None
    return len(text)


def report_data(
    paths: list[Path], episodes: int, title: str | None, progress: Progress = _no_progress
) -> dict[str, Any]:
    """All data of the page as JSON values."""
    progress("reading runs")
    found, left_out = drop_damaged(find_sources(paths))
    sources = [(source, sort_runs(read_source(source, with_name=len(found) > 1))) for source in found]
    sources, repeated = drop_repeated(sources)
    left_out += repeated
    runs = [run for _, own in sources for run in own]
    tasks = group_runs(runs)
    default = " and ".join(source.name for source in found if source.name) or _default_title(tasks)
    return {
        "title": title or default,
        "left_out": left_out,
        "facts": run_facts(sources),
        "colours": choose_colours({run.label: run.config.algorithm for run in runs}),
        "tables": result_tables(sources),
        "sizes": OBJECT_SIZES | {"map": HALF_VIEW * SIDE / (SIDE - 1)},
        "heat_scale": {"low": HEAT_LOW, "high": HEAT_HIGH, "power": HEAT_POWER},
        "tasks": [_task(task, group, episodes, progress) for task, group in tasks.items()],
    }


def _task(task: str, group: dict[str, list[ReportRun]], episodes: int, progress: Progress) -> dict[str, Any]:
    progress(f"drawing curves of {task}")
    drawn = {"charts": learning_charts(group), "cases": cpo_case_charts(group)}
    replays = []
    for label, runs in group.items() if episodes else ():
        progress(f"recording {label} on {task}")
        replays.append(replay(label, runs, episodes))
    return {"name": task, **drawn, "replays": replays}


def _default_title(tasks: RunGroups) -> str:
    labels = list(dict.fromkeys(label for group in tasks.values() for label in group))
    where = next(iter(tasks)) if len(tasks) == 1 else f"{len(tasks)} tasks"
    what = ", ".join(labels) if len(labels) <= 4 else f"{len(labels)} algorithms"
    return f"{what} on {where}"


def render_page(data: dict[str, Any]) -> str:
    """The HTML of the page, with style, scripts and data inside."""
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "".join(_asset(name) for name in SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_asset("page.html")).substitute(
        policy=html.escape(policy),
        title=html.escape(data["title"]),
        style=style,
        script=script,
        data=embedded_json(data),
    )


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (importlib.resources.files("flashbulb.report") / "assets" / name).read_text(encoding="utf-8")
