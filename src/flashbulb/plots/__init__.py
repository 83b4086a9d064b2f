"""Figures and videos, with one colour per algorithm and the statistics of `flashbulb.analysis.statistics`.

Everything is drawn from run directories and trained policies. May use the base modules, `envs`, `memory`, `algorithms`,
`storage` and `analysis`.
"""
