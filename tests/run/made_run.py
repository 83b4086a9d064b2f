"""The directory of a run without the training: a policy with random weights that are large enough to matter."""

import dataclasses

import jax
import numpy as np

from flashbulb.cmdp.budget import Budgeted
from flashbulb.cmdp.contract import rings_of
from flashbulb.learn.learner import init_learner
from flashbulb.learn.policy import policy_for
from flashbulb.recipes import configure, recipe
from flashbulb.run.checkpoint import Checkpoints
from flashbulb.run.csv_log import CsvLog
from flashbulb.run.directory import RunDirectory
from flashbulb.run.spaces import save_spaces
from flashbulb.run.state import _around
from flashbulb.run.world import make_world

COLUMNS = ("return", "cost", "violation_rate")


def made_run(runs_dir, name, recipe_name="cpo", env="HazardField-v0", iterations=4, done=4, seed=0, **settings):
    """Its metrics are straight lines whose height is the seed."""
    sizes = {"num_envs": 3, "steps_per_iteration": 300, "steps": 300 * iterations, "policy": {"hidden": (16, 8)}}
    config = configure(recipe_name, env, runs_dir=runs_dir, name=name, seed=seed, **(sizes | settings))
    config = dataclasses.replace(config, vectorise="serial")
    world = make_world(recipe(recipe_name), config)
    policy = policy_for(world.single_observation_space, world.single_action_space)
    rng, size = np.random.default_rng(seed), world.single_observation_space.shape[0]
    # Shapes only: to compute JAX's initial weights takes longer than all that is tested with them.
    shapes = jax.eval_shape(lambda: init_learner(policy, size, recipe(recipe_name), config, jax.random.key(0)))
    learner = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(leaf.dtype), shapes)
    if isinstance(world, Budgeted):
        learner = learner._replace(schedule=learner.schedule._replace(budget=np.float32(17.0)))
    state = _around(learner, world.reset(seed=seed)[0], world.get_state(), rings_of(world), config)
    normaliser = state.normaliser.absorb(rng.normal(0.3, 2.0, (500, size)))
    totals = state.totals._replace(iterations=np.int64(done), steps=np.int64(300 * done))
    state = state._replace(normaliser=normaliser, totals=totals)
    directory = RunDirectory.create(config)
    save_spaces(directory.path, world)
    Checkpoints(directory.checkpoints).save(done, state)
    log = CsvLog(directory.metrics)
    for n in range(done):
        values = {name: seed + n * (k + 1.0) for k, name in enumerate(COLUMNS)}
        log.write([{"iteration": n, "steps": 300 * (n + 1), **values}])
    world.close()
    return directory.path
