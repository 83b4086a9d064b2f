"""A run directory with given metrics, without training."""

from flashbulb.algorithms.registry import configure
from flashbulb.storage.csv_log import CsvLog
from flashbulb.storage.run_directory import RunDirectory


def written_run(
    runs_dir, name, columns, algorithm="cpo", env="HazardField-v0", iterations=None, seconds=None, **settings
):
    """`columns` are lists over iterations of 100 steps; `iterations` is the planned number."""
    done = len(next(iter(columns.values())))
    sizes = {"num_envs": 2, "steps_per_iteration": 100, "steps": 100 * (iterations or done)}
    directory = RunDirectory.create(configure(algorithm, env, runs_dir=runs_dir, name=name, **(sizes | settings)))
    for n in range(done):
        values = {column: values[n] for column, values in columns.items()}
        CsvLog(directory.metrics).write([{"iteration": n, "steps": 100 * (n + 1), **values}])
        if seconds is not None:
            CsvLog(directory.timing).write([{"iteration": n, "seconds": seconds, "steps_per_second": 100 / seconds}])
    return directory.path
