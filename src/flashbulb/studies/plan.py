"""From a study and a scale to its runs, and where their files live.

studies/NAME-SCALE/
    study.json       what was asked for, with what it was made, and the label of every run
    runs/JOB/        ordinary run directories
    logs/JOB.log     what each run printed; JOB.failed says in one line why one could not go on, JOB.elsewhere that it
                     runs on another machine
    measures.csv, table.csv, table.md, figure*.png    made from the runs
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from flashbulb.envs.registry import resolve
from flashbulb.config import Config, to_dict
from flashbulb.errors import UsageError
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.storage.checkpoint import write_whole
from flashbulb.storage.run_directory import RunDirectory, load_config, provenance
from flashbulb.studies.catalogue import NOTHING, Study, Variant, study_named

ScaleName = Literal["smoke", "short", "paper"]
FREE = {"runs_dir", "threads", "vectorise"}  # settings that change no result


class Scale(NamedTuple):
    """How long and how often."""

    steps: int
    seeds: tuple[int, ...]
    bias_every: int  # iterations; a measurement takes about as long as a million steps
    settings: Mapping[str, Any] = NOTHING


SCALES: dict[ScaleName, Scale] = {
    "smoke": Scale(
        8_000, (0, 1), 2, {"num_envs": 4, "steps_per_iteration": 2_000, "checkpoint_every": 2, "bias_states": 4}
    ),
    "short": Scale(1_000_000, (0, 1, 2), 10),
    "paper": Scale(10_000_000, (0, 1, 2, 3, 4, 5), 25),
}


class Request(NamedTuple):
    """Which part of a study, where not all of it; tasks and algorithms that the study does not have are added to it."""

    tasks: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    steps: int | None = None


EVERYTHING = Request()


class Job(NamedTuple):
    """A run; its name is unique in the study and is that of the run's directory."""

    name: str
    config: Config


class Plan(NamedTuple):
    study: Study
    scale: ScaleName
    request: Request
    path: Path
    jobs: tuple[Job, ...]
    labels: dict[str, str]  # job name -> line of the figure that it belongs to

    @property
    def about(self) -> Path:
        return self.path / "study.json"

    def run(self, job: Job) -> Path:
        return self.path / "runs" / job.name

    def log(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.log"

    def failure(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.failed"

    def mark(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.elsewhere"


def make_plan(name: str, scale: ScaleName, directory: Path, request: Request = EVERYTHING) -> Plan:
    """All algorithms and tasks with the first seed, then all with the next: what is there early is balanced."""
    study, size = study_named(name), SCALES[scale]
    path = Path(directory) / f"{name}-{scale}"
    tasks = tuple(dict.fromkeys(resolve(task) for task in request.tasks)) or study.tasks
    variants = _variants(study, request.algorithms)
    settings = dict(size.settings) | {"steps": request.steps or size.steps, "threads": 1, "runs_dir": path / "runs"}
    if study.measures_bias:
        settings["bias_every"] = size.bias_every
    jobs, labels = [], {}
    for seed in dict.fromkeys(request.seeds or size.seeds):
        for task in tasks:
            for variant in variants:
                job_name = _name(variant.label, task, seed)
                own = settings | dict(variant.settings) | {"seed": seed, "name": job_name}
                jobs.append(Job(job_name, configure(variant.algorithm, task, **own)))
                labels[job_name] = variant.label
    return Plan(study, scale, request, path, tuple(jobs), labels)


def _variants(study: Study, wanted: tuple[str, ...]) -> tuple[Variant, ...]:
    """Those with the algorithm or label; an algorithm that the study does not have joins it as it is."""
    if not wanted:
        return study.variants
    chosen: list[Variant] = []
    for name in wanted:
        known = [variant for variant in study.variants if name in (variant.algorithm, variant.label)]
        if not known:
            get_algorithm(name)
        chosen += known or [Variant(name, name)]
    return tuple({variant.label: variant for variant in chosen}.values())


def _name(label: str, task: str, seed: int) -> str:
    return "_".join(re.sub(r"[^\w.-]+", "-", part) for part in (label, task, f"seed{seed}"))


def last_request(name: str, scale: ScaleName, directory: Path) -> Request:
    """What was asked for last in that directory; everything if nothing was."""
    plain = _read_about(Path(directory) / f"{name}-{scale}" / "study.json").get("request", {})
    tasks, algorithms, seeds = (tuple(plain.get(field, ())) for field in ("tasks", "algorithms", "seeds"))
    return Request(tasks, algorithms, seeds, plain.get("steps"))


def settle(plan: Plan, command: str) -> Plan:
    """Write down what is asked for. Runs that were asked for here before stay part of the study.

    A run that is there with other settings is refused, for the study would compare what is not comparable.
    """
    if os.path.isfile(plan.about) and RunDirectory(plan.path).is_locked():
        raise UsageError(f"directory: {plan.path} is in use by another study; wait for it or stop it.")
    refuse_other_settings(plan)
    before = _read_about(plan.about).get("labels", {})
    plan = plan._replace(labels={**before, **plan.labels})
    for place in (plan.path / "runs", plan.path / "logs"):
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"directory: cannot make {place} ({error.strerror}); name a writable place.") from None
    about = {
        "name": plan.study.name,
        "figure": plan.study.figure,
        "scale": plan.scale,
        "command": command,
        "request": plan.request._asdict(),
        "labels": plan.labels,
        **provenance(),
    }
    write_whole(plan.about, (json.dumps(about, indent=2) + "\n").encode())
    return plan


def refuse_other_settings(plan: Plan) -> None:
    for job in plan.jobs:
        if not (plan.run(job) / "config.json").exists():
            continue
        found, wanted = (flat(config) for config in (load_config(plan.run(job)), job.config))
        for field in wanted:
            if field not in FREE and found[field] != wanted[field]:
                raise UsageError(
                    f"{field}: {plan.run(job)} was made with {found[field]!r}, not with {wanted[field]!r}; "
                    "name another --directory, or delete what is there."
                )


def flat(config: Config) -> dict[str, Any]:
    """Settings under their dotted names, as the command line has them."""
    return dict(_flat(to_dict(config), ""))


def _flat(plain: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    return [
        item
        for name, value in plain.items()
        for item in (_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)])
    ]


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"directory: {path} cannot be read ({type(error).__name__}: {error}).") from None
    if not isinstance(about, dict) or not all(isinstance(about.get(key, {}), dict) for key in ("labels", "request")):
        raise UsageError(f"directory: {path} is not that of a study.")
    return about
