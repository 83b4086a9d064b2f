"""Small plans for the tests of studies, whose runs take about a second."""

import dataclasses
import itertools

from rich.console import Console

from flashbulb.algorithms.registry import configure
from flashbulb.studies.catalogue import STUDIES
from flashbulb.studies.plan import WHOLE_STUDY, Job, StudyPlan
from flashbulb.training.loop import train
from tests.training.killing import TINY

BROKEN = "tests.envs.gym_examples:broken_nan_reward"
ITERATIONS = 60


def small_plan(path, *tasks_of_algorithms, seeds=(5,), **settings):
    """A plan of runs that take a second each, from pairs of algorithm and task."""
    jobs = []
    for seed, (algorithm, env) in itertools.product(seeds, tasks_of_algorithms):
        name = f"{algorithm}_{env.split(':')[-1]}" + (f"_seed{seed}" if len(seeds) > 1 else "")
        own = TINY | {"name": name, "runs_dir": path / "runs", "threads": 1, "seed": seed} | settings
        jobs.append(Job(name, configure(algorithm, env, **own)))
    for place in ("runs", "logs"):
        (path / place).mkdir(parents=True)
    labels = {job.name: job.config.algorithm for job in jobs}
    return StudyPlan(STUDIES["versus-base"], "smoke", WHOLE_STUDY, path, tuple(jobs), labels)


def reference(place, job):
    """The same run, trained in this process without interruption."""
    config = dataclasses.replace(job.config, runs_dir=place / "undisturbed")
    train(config, Console(quiet=True))
    return place / "undisturbed" / job.name
