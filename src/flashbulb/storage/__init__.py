"""Run directories, checkpoints, CSV files and dashboards, in versioned formats.

Holds how a run is written and read, not what its numbers mean. Names in files are fixed here and do not follow the
names of Python fields. May use the base modules, `envs`, `memory` and `algorithms`.
"""
