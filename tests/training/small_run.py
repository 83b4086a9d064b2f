"""The directory of a run without the training: a policy with random weights that are large enough to matter."""

import dataclasses

import jax
import numpy as np

from flashbulb.algorithms.cost_budget import make_training_env
from flashbulb.algorithms.learner import Learner
from flashbulb.algorithms.policy import policy_for
from flashbulb.algorithms.registry import configure, get_algorithm
from flashbulb.envs.base import lidar_groups_of
from flashbulb.envs.budget_wrapper import BudgetWrapper
from flashbulb.storage.checkpoint import Checkpoints
from flashbulb.storage.csv_log import CsvLog
from flashbulb.storage.run_directory import RunDirectory, save_spaces
from flashbulb.training.train_state import _assemble, _empty_normaliser

COLUMNS = ("return", "cost", "violation_rate")


def made_run(runs_dir, name, algorithm_name="cpo", env="HazardField-v0", iterations=4, done=4, seed=0, **settings):
    """Its metrics are straight lines whose height is the seed."""
    sizes = {"num_envs": 3, "steps_per_iteration": 300, "steps": 300 * iterations, "policy": {"hidden": (16, 8)}}
    config = configure(algorithm_name, env, runs_dir=runs_dir, name=name, seed=seed, **(sizes | settings))
    config = dataclasses.replace(config, vectorise="serial")
    env_batch = make_training_env(get_algorithm(algorithm_name), config)
    policy = policy_for(env_batch.single_observation_space, env_batch.single_action_space)
    algorithm = get_algorithm(algorithm_name)
    rng, size = np.random.default_rng(seed), env_batch.single_observation_space.shape[0]
    features = _empty_normaliser(size, lidar_groups_of(env_batch), config).features
    # Shapes only: to compute JAX's initial weights takes longer than all that is tested with them.
    shapes = jax.eval_shape(lambda: Learner(policy, algorithm, config).init(features, jax.random.key(0)))
    learner = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(leaf.dtype), shapes)
    if isinstance(env_batch, BudgetWrapper):
        learner = learner._replace(schedule=learner.schedule._replace(budget=np.float32(17.0)))
    state = _assemble(learner, env_batch.reset(seed=seed)[0], env_batch.get_state(), lidar_groups_of(env_batch), config)
    normaliser = state.normaliser.absorb(rng.normal(0.3, 2.0, (500, size)))
    totals = state.totals._replace(iterations=np.int64(done), steps=np.int64(300 * done))
    state = state._replace(normaliser=normaliser, totals=totals)
    directory = RunDirectory.create(config)
    save_spaces(directory.path, env_batch)
    Checkpoints(directory.checkpoints).save(done, state)
    log = CsvLog(directory.metrics)
    for n in range(done):
        values = {name: seed + n * (k + 1.0) for k, name in enumerate(COLUMNS)}
        log.write([{"iteration": n, "steps": 300 * (n + 1), **values}])
    env_batch.close()
    return directory.path
