"""The plan of a study: its runs, and where their files are.

studies/NAME-SCALE/
    study.json       the request, versions and machine, and the label of every run
    runs/JOB/        ordinary run directories
    logs/JOB.log     the output of each run; JOB.failed gives the reason of a failure in one line, JOB.remote marks a
                     run on another machine
    measures.csv, table.csv, table.md, figure*.png    made from the runs
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.analysis.experiment import differences
from flashbulb.config import Config
from flashbulb.envs.registry import resolve
from flashbulb.errors import UsageError
from flashbulb.storage.provenance import provenance
from flashbulb.storage.run_directory import RunDirectory, load_config
from flashbulb.storage.safe_files import read_json, write_whole
from flashbulb.studies.catalogue import NO_SETTINGS, FigureKind, Study, Variant, get_study

ScaleName = Literal["smoke", "short", "medium", "paper"]


class StudyScale(NamedTuple):
    """Length of the runs, number of seeds, and how often the bias is measured."""

    steps: int
    seeds: tuple[int, ...]
    bias_every: int  # iterations; a measurement takes as long as 5 (PointCircle1) to 30 (Hopper) of them
    settings: Mapping[str, Any] = NO_SETTINGS


SCALES: dict[ScaleName, StudyScale] = {
    "smoke": StudyScale(
        8_000, (0, 1), 2, {"num_envs": 4, "steps_per_iteration": 2_000, "checkpoint_every": 2, "bias_states": 4}
    ),
    "short": StudyScale(1_000_000, (0, 1, 2), 10),
    "medium": StudyScale(2_000_000, (0, 1, 2), 20),
    "paper": StudyScale(10_000_000, (0, 1, 2, 3, 4, 5), 50),
}


class StudyRequest(NamedTuple):
    """The part of a study to run; empty fields mean all of it. Tasks and algorithms may be others than the study's."""

    tasks: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    steps: int | None = None
    bias_every: int | None = None  # iterations between measurements of the cost critic's bias, in any study


WHOLE_STUDY = StudyRequest()


class Job(NamedTuple):
    """A run of the study. Its name is unique and names the run directory."""

    name: str
    config: Config


class StudyPlan(NamedTuple):
    study: Study
    scale: ScaleName
    request: StudyRequest
    path: Path
    jobs: tuple[Job, ...]
    labels: dict[str, str]  # job name -> label in tables and figures

    @property
    def kinds(self) -> tuple[FigureKind, ...]:
        """The kinds of figure to draw: those of the study, and the bias where it was asked for."""
        asked: tuple[FigureKind, ...] = ("bias",) if self.request.bias_every else ()
        return tuple(dict.fromkeys(self.study.kinds + asked))

    @property
    def study_file(self) -> Path:
        return self.path / "study.json"

    def run_path(self, job: Job) -> Path:
        return self.path / "runs" / job.name

    def log_path(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.log"

    def failure_path(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.failed"

    def remote_marker(self, job: Job) -> Path:
        return self.path / "logs" / f"{job.name}.remote"


def make_plan(name: str, scale: ScaleName, directory: Path, request: StudyRequest = WHOLE_STUDY) -> StudyPlan:
    """The plan of a named study. All runs of the first seed come first, so that early results are balanced."""
    study, size = get_study(name), SCALES[scale]
    path = Path(directory) / f"{name}-{scale}"
    tasks = tuple(dict.fromkeys(resolve(task) for task in request.tasks)) or study.tasks
    variants = _variants(study, request.algorithms)
    settings = dict(size.settings) | {"steps": request.steps or size.steps, "threads": 1, "runs_dir": path / "runs"}
    jobs, labels = [], {}
    for seed in dict.fromkeys(request.seeds or size.seeds):
        for task in tasks:
            for variant in variants:
                job_name = _job_name(variant.label, task, seed)
                own = settings | dict(variant.settings) | {"seed": seed, "name": job_name}
                config = configure(variant.algorithm, task, **own)
                if request.bias_every or study.measures_bias:
                    config = _measuring_bias(config, request.bias_every, size.bias_every)
                jobs.append(Job(job_name, config))
                labels[job_name] = variant.label
    return StudyPlan(study, scale, request, path, tuple(jobs), labels)


def _measuring_bias(config: Config, asked: int | None, usual: int) -> Config:
    """The configuration with measurements of the cost critic's bias, at least one in a run."""
    if asked and asked >= config.iterations:
        raise UsageError(
            f"bias_every: {asked} is not allowed; it must be less than {config.iterations}, the iterations of a run."
        )
    return dataclasses.replace(config, bias_every=asked or min(usual, max(config.iterations - 1, 1)))


def _variants(study: Study, wanted: tuple[str, ...]) -> tuple[Variant, ...]:
    """Variants with these labels, or else with these algorithms; other algorithms are added with their defaults."""
    if not wanted:
        return study.variants
    chosen: list[Variant] = []
    for name in wanted:
        known = [variant for variant in study.variants if variant.label == name]
        known = known or [variant for variant in study.variants if variant.algorithm == name]
        if not known:
            get_algorithm(name)
        chosen += known or [Variant(name, name)]
    return tuple({variant.label: variant for variant in chosen}.values())


def _job_name(label: str, task: str, seed: int) -> str:
    return "_".join(re.sub(r"[^\w.-]+", "-", part) for part in (label, task, f"seed{seed}"))


def last_request(name: str, scale: ScaleName, directory: Path) -> StudyRequest:
    """The request that was saved last in the study's directory; the whole study if there is none."""
    saved = _read_study_file(Path(directory) / f"{name}-{scale}" / "study.json").get("request", {})
    algorithms = saved.get("algorithms", saved.get("recipes", ()))  # older studies have "recipes"
    tasks, seeds = (tuple(saved.get(field, ())) for field in ("tasks", "seeds"))
    return StudyRequest(tasks, tuple(algorithms), seeds, saved.get("steps"), saved.get("bias_every"))


def save_plan(plan: StudyPlan, command: str) -> StudyPlan:
    """Create the study's directory and write study.json; runs of earlier requests remain part of the study.

    A run that exists with other settings is refused, since the study would compare unlike runs.
    """
    if os.path.isfile(plan.study_file) and RunDirectory(plan.path).is_locked():
        raise UsageError(f"directory: {plan.path} is in use by another study; wait for it or stop it.")
    check_existing_runs(plan)
    earlier = _read_study_file(plan.study_file).get("labels", {})
    plan = plan._replace(labels={**earlier, **plan.labels})
    for place in (plan.path / "runs", plan.path / "logs"):
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"directory: cannot make {place} ({error.strerror}); name a writable place.") from None
    content = {
        "name": plan.study.name,
        "figure": plan.study.figure,
        "scale": plan.scale,
        "command": command,
        "request": plan.request._asdict(),
        "labels": plan.labels,
        **provenance(),
    }
    write_whole(plan.study_file, (json.dumps(content, indent=2) + "\n").encode())
    return plan


def check_existing_runs(plan: StudyPlan) -> None:
    """Raise `UsageError` if the directory has runs with the label and task of one of the plan's, but other settings.

    These may be of an earlier request and another seed: the table would take them for seeds of one experiment.
    """
    wanted = {(plan.labels[job.name], job.config.env): job.config for job in plan.jobs}
    labels = _read_study_file(plan.study_file).get("labels", {}) | plan.labels
    for name, label in labels.items():
        run = plan.path / "runs" / name
        if not (run / "config.json").exists():
            continue
        found = load_config(run)
        planned = wanted.get((label, found.env))
        for field, (value, asked) in differences(found, planned).items() if planned else ():
            if not _is_without_clock(field, value):
                raise UsageError(
                    f"{field}: {run} was made with {value!r}, not with {asked!r}; "
                    "name another --directory, or delete what is there."
                )


def _is_without_clock(field: str, found: Any) -> bool:
    """Whether a run has what training makes of this setting in an environment whose episodes cannot be staggered."""
    return (field, found) in (("stagger", False), ("cost_estimate", "episodes"))


def _read_study_file(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"directory: {path} cannot be read ({type(error).__name__}: {error}).") from None
    if not isinstance(content, dict) or not all(
        isinstance(content.get(key, {}), dict) for key in ("labels", "request")
    ):
        raise UsageError(f"directory: {path} is not the study.json of a study.")
    return content
