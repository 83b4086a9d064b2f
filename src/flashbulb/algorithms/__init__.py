"""Algorithms as combinations of parts: advantages, critics, actor steps, multipliers, cost budgets.

Pure functions from data to data; `registry.py` is the table of names, `learner.py` puts the parts together.
May use the environment contract and the base modules; knows nothing of files.
"""
