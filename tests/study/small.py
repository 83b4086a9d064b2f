"""Small plans for the tests of studies: seconds where the paper has days."""

import dataclasses
import itertools

from rich.console import Console

from flashbulb.recipes import configure
from flashbulb.run.train import train
from flashbulb.study.plan import EVERYTHING, Job, Plan
from flashbulb.study.studies import STUDIES
from tests.run.killing import TINY

BROKEN = "tests.cmdp.foreign_worlds:broken_nan_reward"
ITERATIONS = 60


def small_plan(path, *tasks_of_recipes, seeds=(5,), **settings):
    """A plan of runs that take a second each, from pairs of recipe and task."""
    jobs = []
    for seed, (recipe, env) in itertools.product(seeds, tasks_of_recipes):
        name = f"{recipe}_{env.split(':')[-1]}" + (f"_seed{seed}" if len(seeds) > 1 else "")
        own = TINY | {"name": name, "runs_dir": path / "runs", "threads": 1, "seed": seed} | settings
        jobs.append(Job(name, configure(recipe, env, **own)))
    for place in ("runs", "logs"):
        (path / place).mkdir(parents=True)
    labels = {job.name: job.config.recipe for job in jobs}
    return Plan(STUDIES["versus-base"], "smoke", EVERYTHING, path, tuple(jobs), labels)


def reference(place, job):
    """The same run, never disturbed, in this process."""
    config = dataclasses.replace(job.config, runs_dir=place / "undisturbed")
    train(config, Console(quiet=True))
    return place / "undisturbed" / job.name
